// The embedded swapper's face on the device: engines/swap/mesh/kernels.py's draw, and what it needs. What goes up for a face is less than
// 4 kB a piece: points and light as 16-bit numbers; a vertex is built of them here.
#include "sources.cuh"

#define VERTICES 468
#define SHOULDER 70.0f  // grey levels below white from which highlights are bent

// B, G, R of the frame around each vertex, times 256: blocks of pixels averaged, sampled between. u16 [468, 3]; `look`: left, top, columns,
// rows, block. `points`: short [468, 3], see mesh_vertices.
extern "C" __global__ void mesh_look(const u8* frame, int width, int height, int pitch, const short* points, const float* numbers,
                                     const int* look, u16* colours) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= VERTICES) return;
  Picture picture{(u8*)frame, width, height, pitch};
  int left = look[0], top = look[1], columns = look[2], rows = look[3], block = look[4];
  float x = (numbers[1] + numbers[0] * points[3 * v] - left + 0.5f) / block - 0.5f;
  float y = (numbers[2] + numbers[0] * points[3 * v + 1] - top + 0.5f) / block - 0.5f;
  Taps taps(make_float2(clamped(x, 0.0f, columns - 1.001f), clamped(y, 0.0f, rows - 1.001f)));
  float sum[3] = {0, 0, 0};
  for (int k = 0; k < 4; k++) {
    int total[3] = {0, 0, 0}, from_x = left + taps.column(k) * block, from_y = top + taps.row(k) * block;
    int across = min(block, width - from_x), down = min(block, height - from_y);  // less than a block only where the face is a sliver
    for (int j = 0; j < down; j++)
      for (int i = 0; i < across; i++)
        for (int c = 0; c < 3; c++) total[c] += picture.at(from_x + i, from_y + j)[c];
    for (int c = 0; c < 3; c++) sum[c] += taps.w[k] * level((float)total[c] / max(1, across * down));
  }
  for (int c = 0; c < 3; c++) colours[3 * v + c] = (u16)(sum[c] * 256 + 0.5f);
}

struct Vertex {
  float x, y, z;  // pixels of the box
  float s, t;     // texels
  float cover, gain[3], bias[3];
};

__device__ float smoothstep(float x, float low, float high) {
  float t = clamped((x - low) / (high - low), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

// Vertices of the mesh, rings inside eyes and mouth included: Vertex [vertices]. One thread each.
// `numbers`: 0 scale of points; 1 … 3 their x, y, z at 0; 4 … 12 what normals are multiplied by, rows; 13 scale of light; 14 share of detail
// kept; 15 fall and 16 least of it; 17 offset of logs; 18 side of the texture; 19 and 20 the cosines of Facing; 21 and 22 the box's corner.
// `ring`: the outer vertex of each ring vertex; `weights`: float [vertices - 468, 468], how a ring vertex is mixed of the others.
extern "C" __global__ void mesh_vertices(const short* points, const short* light, const float* numbers, const float* normals,
                                         const float* logs, const float* cover, const float* uv, const int* ring, const float* weights,
                                         int vertices, float* out) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= vertices) return;
  float packed[3] = {0, 0, 0};
  if (v < VERTICES) {
    for (int k = 0; k < 3; k++) packed[k] = points[3 * v + k];
  } else {
    for (int i = 0; i < VERTICES; i++) {
      float share = weights[(size_t)(v - VERTICES) * VERTICES + i];
      for (int k = 0; k < 3; k++) packed[k] += share * points[3 * i + k];
    }
  }
  int outer = v < VERTICES ? v : ring[v - VERTICES];  // whose colours it takes
  Vertex& vertex = ((Vertex*)out)[v];
  vertex.x = numbers[1] + numbers[0] * packed[0] - numbers[21];
  vertex.y = numbers[2] + numbers[0] * packed[1] - numbers[22];
  vertex.z = numbers[3] + numbers[0] * packed[2];
  vertex.s = uv[2 * v] * numbers[18] - 0.5f, vertex.t = uv[2 * v + 1] * numbers[18] - 0.5f;

  float turned[3] = {0, 0, 0};
  for (int k = 0; k < 3; k++)
    for (int j = 0; j < 3; j++) turned[k] += normals[3 * outer + j] * numbers[4 + 3 * j + k];
  float length = sqrtf(turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2]) + 1e-12f;
  vertex.cover = v < VERTICES ? cover[v] * smoothstep(-turned[2] / length, numbers[19], numbers[20]) : cover[v];

  float log_gain[3];
  for (int c = 0; c < 3; c++) log_gain[c] = numbers[13] * light[3 * outer + c];
  float brighter = fmaxf(0.0f, 0.114f * log_gain[0] + 0.587f * log_gain[1] + 0.299f * log_gain[2]);
  float kept = numbers[14] * clamped(expf(-numbers[15] * brighter), numbers[16], 1.0f);
  for (int c = 0; c < 3; c++) {
    float gain = expf(log_gain[c]);
    vertex.gain[c] = gain * kept;
    vertex.bias[c] = (expf(logs[3 * outer + c]) - numbers[17]) * gain * (1 - kept);
  }
}

// The three vertices of a triangle that is drawn, and its barycentric gradients.
struct Triangle {
  const Vertex *a, *b, *c;
  float twice;
  __device__ Triangle(const float* vertices, const int* corners) {
    const Vertex* all = (const Vertex*)vertices;
    a = all + corners[0], b = all + corners[1], c = all + corners[2];
    twice = (b->y - c->y) * (a->x - c->x) + (c->x - b->x) * (a->y - c->y);
  }
  __device__ bool is_drawn() const { return twice < -1e-3f && a->cover + b->cover + c->cover > 0; }
  // Where the edge from p to q crosses the row y, if it does.
  __device__ static void cross(const Vertex* p, const Vertex* q, float y, float* left, float* right) {
    if ((p->y <= y) == (q->y <= y)) return;
    float crossing = p->x + (y - p->y) * (q->x - p->x) / (q->y - p->y);
    *left = fminf(*left, crossing), *right = fmaxf(*right, crossing);
  }
};

// Which triangle is nearest at each pixel of the box: u64 [height, width], 0 before. Its depth, nearer is more, over its number from 1 on.
// Half-open spans, so that triangles that share an edge share no pixel; depth is a triangle's mean, as the processor sorts them. One warp each.
extern "C" __global__ void mesh_raster(const float* vertices, const int* triangles, int count, const Face* faces, u64* nearest) {
  int t = blockIdx.x;
  if (t >= count) return;
  Triangle it(vertices, triangles + 3 * t);
  if (!it.is_drawn()) return;
  const Face& face = faces[0];
  int bits = __float_as_int(-(it.a->z + it.b->z + it.c->z) / 3);
  u64 depth = bits < 0 ? (unsigned)~bits : (unsigned)bits | 0x80000000u, key = depth << 32 | (unsigned)(t + 1);
  int top = max(0, (int)ceilf(fminf(it.a->y, fminf(it.b->y, it.c->y))));
  int bottom = min(face.height, (int)ceilf(fmaxf(it.a->y, fmaxf(it.b->y, it.c->y))));
  for (int y = top; y < bottom; y++) {
    float left = 1e9f, right = -1e9f;
    it.cross(it.a, it.b, y, &left, &right), it.cross(it.b, it.c, y, &left, &right), it.cross(it.c, it.a, y, &left, &right);
    int last = min(face.width, (int)ceilf(right));
    for (int x = max(0, (int)ceilf(left)) + threadIdx.x; x < last; x += blockDim.x) atomicMax(&nearest[(size_t)y * face.width + x], key);
  }
}

// Where the texture is brightened, what would burn out is bent below white.
__device__ int bent(float value, float gain) {
  float room = SHOULDER * clamped(2 * (gain - 1), 0.0f, 1.0f), over = value - (255 - room);
  if (over > 0 && room > 0) value = 255 - room + over * room / (room + over);
  return (int)clamped(value, 0.0f, 255.0f);
}

__device__ Colour shade(const float* vertices, const int* triangles, u64 key, const u8* texture, int side, int x, int y) {
  Colour out = {{0, 0, 0}, 0};
  if (!key) return out;
  Triangle it(vertices, triangles + 3 * ((unsigned)key - 1));
  float px = x - it.c->x, py = y - it.c->y, scale = 1 / it.twice;
  float u = ((it.b->y - it.c->y) * px + (it.c->x - it.b->x) * py) * scale;
  float v = ((it.c->y - it.a->y) * px + (it.a->x - it.c->x) * py) * scale, w = 1 - u - v;
  float s = u * it.a->s + v * it.b->s + w * it.c->s, t = u * it.a->t + v * it.b->t + w * it.c->t;
  float covered = clamped(u * it.a->cover + v * it.b->cover + w * it.c->cover, 0.0f, 1.0f);
  covered = covered * covered * (3 - 2 * covered);
  int i = clamped((int)s, 0, side - 2), j = clamped((int)t, 0, side - 2);
  float fs = clamped(s - i, 0.0f, 1.0f), ft = clamped(t - j, 0.0f, 1.0f);
  const u8* texel = texture + ((size_t)j * side + i) * 4;
  float sum[4];
  for (int c = 0; c < 4; c++)
    sum[c] = (texel[c] * (1 - fs) + texel[4 + c] * fs) * (1 - ft) + (texel[4 * side + c] * (1 - fs) + texel[4 * side + 4 + c] * fs) * ft;
  out.alpha = (u8)(covered * sum[3] + 0.5f);
  float green = u * it.a->gain[1] + v * it.b->gain[1] + w * it.c->gain[1];
  for (int c = 0; c < 3; c++) {
    float gain = u * it.a->gain[c] + v * it.b->gain[c] + w * it.c->gain[c];
    float bias = u * it.a->bias[c] + v * it.b->bias[c] + w * it.c->bias[c] + 0.5f;
    out.c[c] = bent(sum[c] * gain + bias, green);
  }
  return out;
}

// Texture, light and blend at once. `nearest` is 0 again afterwards, for the next frame.
extern "C" __global__ void mesh_draw(u8* frame, int width, int height, int pitch, const Face* faces, const float* vertices,
                                     const int* triangles, const u8* texture, int side, const u8* limit, u64* nearest) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  FOR_REGION(x, y, face.width, face.height) {
    size_t place = (size_t)y * face.width + x;
    Colour colour = shade(vertices, triangles, nearest[place], texture, side, x, y);
    nearest[place] = 0;
    if (limit) colour.alpha = min(colour.alpha, (int)limit[place]);
    blend(picture.at(face.left + x, face.top + y), colour, face.opacity);
  }
}

// The same without the blend: pixels u8 [height, width, 3] and alpha u8 [height, width] of the box.
extern "C" __global__ void mesh_patch(const Face* faces, const float* vertices, const int* triangles, const u8* texture, int side,
                                      const u8* limit, u64* nearest, u8* pixels, u8* alpha) {
  const Face& face = faces[0];
  FOR_REGION(x, y, face.width, face.height) {
    size_t place = (size_t)y * face.width + x;
    Colour colour = shade(vertices, triangles, nearest[place], texture, side, x, y);
    nearest[place] = 0;
    alpha[place] = (u8)(limit ? min(colour.alpha, (int)limit[place]) : colour.alpha);
    for (int c = 0; c < 3; c++) pixels[3 * place + c] = (u8)colour.c[c];
  }
}
