// The embedded swapper's face on the device: MeshSwapper.draw and engines/swap/mesh/kernels.py's draw, to the bit: float32 throughout, each
// step rounded (no fused multiply-add), in the same order there. Change both. What goes up for a face is less than 4 kB a piece: places and
// light as 16-bit numbers (engines/swap/mesh/plan.py); a vertex is built of them here.
#include "patch.cuh"

#define VERTICES 468
#define SHOULDER 70.0f  // grey levels below white from which highlights are bent

struct Vertex {
  float x, y, z;  // pixels of the box
  float s, t;     // texels
  float cover, gain[3], bias[3];
};

// What vertices are built of, rings inside eyes and mouth included. `points`: short [vertices, 3]; `light`: short [468, 4]: factors of B, G, R, and
// the share of detail that is kept.
// `numbers`: 0 step of points; 1 … 3 their x, y, z at 0; 4 … 12 what normals are multiplied by, rows; 13 step of light; 14 side of the
// texture; 15 and 16 of Facing: the cosine of what is edge-on, and from there to what is plain; 17 and 18 the box's corner.
// `ring`: the outer vertex of each ring vertex, whose colours it takes. `colours`: float [468, 3], the texture's around each vertex.
struct Mesh {
  const short *points, *light;
  const float *numbers, *normals, *colours, *cover, *uv;
  const int* ring;
  __device__ Vertex vertex(int v) const;
};

__device__ Vertex Mesh::vertex(int v) const {
  int outer = v < VERTICES ? v : ring[v - VERTICES];
  Vertex vertex;
  vertex.x = numbers[1] + numbers[0] * points[3 * v] - numbers[17];
  vertex.y = numbers[2] + numbers[0] * points[3 * v + 1] - numbers[18];
  vertex.z = numbers[3] + numbers[0] * points[3 * v + 2];
  vertex.s = uv[2 * v] * numbers[14] - 0.5f, vertex.t = uv[2 * v + 1] * numbers[14] - 0.5f;

  float turned[3];
  for (int k = 0; k < 3; k++)
    turned[k] = normals[3 * outer] * numbers[4 + k] + normals[3 * outer + 1] * numbers[7 + k] + normals[3 * outer + 2] * numbers[10 + k];
  float length = sqrtf(turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2]) + 1e-12f;
  float plain = clamped((-turned[2] / length - numbers[15]) / numbers[16], 0.0f, 1.0f);
  vertex.cover = v < VERTICES ? cover[v] * (plain * plain * (3 - 2 * plain)) : cover[v];

  const short* own = light + 4 * outer;
  float kept = numbers[13] * own[3];
  for (int c = 0; c < 3; c++) {
    float gain = numbers[13] * own[c];
    vertex.gain[c] = gain * kept;
    vertex.bias[c] = colours[3 * outer + c] * gain * (1 - kept);
  }
  return vertex;
}

// The three vertices of a triangle that is drawn, and its barycentric gradients.
struct Triangle {
  const Vertex *a, *b, *c;
  float twice;
  __device__ Triangle(const Vertex* a, const Vertex* b, const Vertex* c) : a(a), b(b), c(c) {
    twice = (b->y - c->y) * (a->x - c->x) + (c->x - b->x) * (a->y - c->y);
  }
  __device__ bool is_drawn() const { return twice < -1e-3f && a->cover + b->cover + c->cover > 0; }
  // Where the edge between p and q crosses the row y, if it does: from its upper end, so that the triangle beyond finds the same place.
  __device__ static void cross(const Vertex* p, const Vertex* q, float y, float* left, float* right) {
    if (p->y > q->y) {
      const Vertex* upper = q;
      q = p, p = upper;
    }
    if (!(p->y <= y && y < q->y)) return;
    float crossing = p->x + (y - p->y) * (q->x - p->x) / (q->y - p->y);
    *left = fminf(*left, crossing), *right = fmaxf(*right, crossing);
  }
};

__device__ void raster(const Triangle& it, int t, const Face& face, u64* nearest) {
  if (!it.is_drawn()) return;
  int bits = __float_as_int(-((it.a->z + it.b->z + it.c->z) / 3) + 0.0f);  // no negative zero
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

// Builds the vertices, Vertex [vertices], and says which triangle is nearest at each pixel of the box: u64 [height, width], 0 before. Its depth,
// nearer is more, over its number from 1 on. Half-open spans, so that triangles that share an edge share no pixel; depth is a triangle's mean, as
// the processor sorts them. A block of one warp for each triangle, which builds its corners itself: those beside it build the same.
extern "C" __global__ void mesh_raster(const short* points, const short* light, const float* numbers, const float* normals, const float* colours,
                                       const float* cover, const float* uv, const int* ring, const int* triangles, int count,
                                       const Face* faces, float* vertices, u64* nearest) {
  __shared__ Vertex corners[3];
  int t = blockIdx.x;
  if (t >= count) return;
  PHASE {
    if (threadIdx.x >= 3) continue;
    int v = triangles[3 * t + threadIdx.x];
    ((Vertex*)vertices)[v] = corners[threadIdx.x] = Mesh{points, light, numbers, normals, colours, cover, uv, ring}.vertex(v);
  }
  PHASE raster(Triangle(corners, corners + 1, corners + 2), t, faces[0], nearest);
}

// Where the texture is brightened, what would burn out is bent below white.
__device__ int bent(float value, float gain) {
  float room = SHOULDER * clamped(2 * (gain - 1), 0.0f, 1.0f), over = value - (255 - room);
  if (over > 0 && room > 0) value = 255 - room + over * room / (room + over);
  return (int)clamped(value, 0.0f, 255.0f);
}

// What varies over a triangle: its value on the row at the column of the corner c, and what a pixel further adds.
struct Across {
  float u, v, w, du, dv, dw, px;
  __device__ Across(const Triangle& it, int x, int y) : px(x - it.c->x) {
    float scale = 1 / it.twice, py = y - it.c->y;
    du = (it.b->y - it.c->y) * scale, dv = (it.c->y - it.a->y) * scale, dw = -du - dv;
    u = (it.c->x - it.b->x) * scale * py, v = (it.a->x - it.c->x) * scale * py, w = 1 - u - v;
  }
  __device__ float of(float a, float b, float c, float more = 0) const {
    return (u * a + v * b + w * c + more) + (du * a + dv * b + dw * c) * px;
  }
};

__device__ Colour shade(const float* vertices, const int* triangles, u64 key, const u8* texture, int side, int x, int y) {
  Colour out = {{0, 0, 0}, 0};
  if (!key) return out;
  const Vertex* all = (const Vertex*)vertices;
  const int* corners = triangles + 3 * ((unsigned)key - 1);
  Triangle it(all + corners[0], all + corners[1], all + corners[2]);
  Across here(it, x, y);
  float last = side - 1.001f;
  float s = clamped(here.of(it.a->s, it.b->s, it.c->s), 0.0f, last), t = clamped(here.of(it.a->t, it.b->t, it.c->t), 0.0f, last);
  float covered = clamped(here.of(it.a->cover, it.b->cover, it.c->cover), 0.0f, 1.0f);
  covered = covered * covered * (3 - 2 * covered);
  int i = (int)s, j = (int)t;
  float fs = s - i, ft = t - j;
  float w11 = fs * ft, w10 = fs - w11, w01 = ft - w11, w00 = 1 - fs - ft + w11;
  const u8* texel = texture + ((size_t)j * side + i) * 4;
  float sum[4];
  for (int c = 0; c < 4; c++) sum[c] = texel[c] * w00 + texel[4 + c] * w10 + texel[4 * side + c] * w01 + texel[4 * side + 4 + c] * w11;
  out.alpha = (u8)(covered * sum[3] + 0.5f);
  float green = here.of(it.a->gain[1], it.b->gain[1], it.c->gain[1]);
  for (int c = 0; c < 3; c++) {
    float gain = here.of(it.a->gain[c], it.b->gain[c], it.c->gain[c]);
    out.c[c] = bent(sum[c] * gain + here.of(it.a->bias[c], it.b->bias[c], it.c->bias[c], 0.5f), green);
  }
  return out;
}

// The face as far as masks leave it. `nearest` is 0 again afterwards, for the next frame.
struct Drawn {
  const float* vertices;
  const int* triangles;
  const u8* texture;
  int side;
  Limit limit;
  u64* nearest;
  __device__ Colour at(const Face& face, int x, int y) const {
    u64& key = nearest[(size_t)y * face.width + x];
    Colour colour = shade(vertices, triangles, key, texture, side, x, y);
    key = 0;
    if (colour.alpha) colour.alpha = min(colour.alpha, limit.of(face, x, y));
    return colour;
  }
};

// Texture, light and blend at once. `limit` … `table`: see Limit.
extern "C" __global__ void mesh_draw(u8* frame, int width, int height, int pitch, const Face* faces, const float* vertices,
                                     const int* triangles, const u8* texture, int side, const u8* limit, const float* segments,
                                     const float* shapes, const u8* masks, const float* table, u64* nearest) {
  const Face& face = faces[0];
  Picture picture{frame, width, height, pitch};
  Drawn source{vertices, triangles, texture, side, {limit, segments, shapes, masks, table}, nearest};
  FOR_REGION(x, y, face.width, face.height) blend(picture.at(face.left + x, face.top + y), source.at(face, x, y), face.opacity);
}

// The same without the blend: a patch, see make_patch.
extern "C" __global__ void mesh_patch(const u8* frame, int width, int height, int pitch, const Face* faces, const float* vertices,
                                      const int* triangles, const u8* texture, int side, const u8* limit, const float* segments,
                                      const float* shapes, const u8* masks, const float* table, u64* nearest, u8* pixels, u8* alpha, u8* cells) {
  __shared__ CellSums sums;
  Drawn source{vertices, triangles, texture, side, {limit, segments, shapes, masks, table}, nearest};
  make_patch(Picture{(u8*)frame, width, height, pitch}, faces[0], source, pixels, alpha, cells, sums);
}
