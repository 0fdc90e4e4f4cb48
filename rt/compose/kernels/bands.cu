// A patch laid in bands: coarse differences fade over a wide seam, fine ones over a narrow one (Burt and Adelson 1983, "A multiresolution
// spline with application to image mosaics"). The pyramids of patch and frame are linear, so that of their difference is enough: the frame
// gets the sum of its bands, each times alpha as smooth as the band is coarse. Level k of a box is its size / 2^k, rounded up; float
// [4, rows, columns]: B, G, R of the difference, alpha in [0, 1]. To leave the box's border as it is, alpha must be 0 for 2^(levels + 1)
// pixels along it.
#include "sources.cuh"

__device__ int halved(int size, int level) { return (size + (1 << level) - 1) >> level; }

__device__ int mirrored(int place, int count) {  // cv2's BORDER_REFLECT_101
  while (place < 0 || place >= count) {
    if (count == 1) return 0;
    place = place < 0 ? -place : 2 * (count - 1) - place;
  }
  return place;
}

// Level 0, of bytes.
struct Bytes {
  Picture picture;
  const Face& face;
  const u8 *pixels, *alpha, *limit;
  __device__ int opaque(int x, int y) const {
    size_t place = (size_t)y * face.width + x;
    return limit ? min((int)alpha[place], (int)limit[place]) : alpha[place];
  }
  __device__ float at(int plane, int x, int y) const {
    int seen = opaque(x, y);
    if (plane == 3) return seen / 255.0f;
    return seen ? (float)(pixels[3 * ((size_t)y * face.width + x) + plane] - picture.at(face.left + x, face.top + y)[plane]) : 0.0f;
  }
};

// Any other level.
struct Floats {
  const float* values;
  int columns, rows;
  __device__ float at(int plane, int x, int y) const { return values[((size_t)plane * rows + y) * columns + x]; }
};

// Every second pixel of `fine` [rows, columns] under the binomial window of five: cv2.pyrDown.
template <class Fine>
__device__ float reduced(const Fine& fine, int columns, int rows, int plane, int x, int y) {
  const float binomial[5] = {1 / 16.0f, 4 / 16.0f, 6 / 16.0f, 4 / 16.0f, 1 / 16.0f};
  float sum = 0;
  for (int j = 0; j < 5; j++)
    for (int i = 0; i < 5; i++)
      sum += binomial[j] * binomial[i] * fine.at(plane, mirrored(2 * x + i - 2, columns), mirrored(2 * y + j - 2, rows));
  return sum;
}

// The way up: what lies between pixels of the half is their mean.
__device__ float expanded(const Floats& half, int plane, int x, int y) {
  int left = x / 2, top = y / 2, right = min(left + x % 2, half.columns - 1), bottom = min(top + y % 2, half.rows - 1);
  return (half.at(plane, left, top) + half.at(plane, right, top) + half.at(plane, left, bottom) + half.at(plane, right, bottom)) / 4;
}

// The sum of this band and all coarser ones, of which `sum` and `half` are a level above.
template <class Fine>
__device__ float collapsed(const Fine& fine, const Floats& half, const Floats& sum, int plane, int x, int y) {
  return expanded(sum, plane, x, y) + (fine.at(plane, x, y) - expanded(half, plane, x, y)) * fine.at(3, x, y);
}

// Level 1 of the box.
extern "C" __global__ void bands_begin(const u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels,
                                       const u8* alpha, const u8* limit, float* out) {
  const Face& face = faces[0];
  Bytes fine{{(u8*)frame, width, height, pitch}, face, pixels, alpha, limit};
  int columns = halved(face.width, 1), rows = halved(face.height, 1);
  FOR_REGION(x, y, columns, rows)
  for (int plane = 0; plane < 4; plane++)
    out[((size_t)plane * rows + y) * columns + x] = reduced(fine, face.width, face.height, plane, x, y);
}

// Level `level` + 1 of level `level`, from 1 on.
extern "C" __global__ void bands_halve(const Face* faces, const float* in, int level, float* out) {
  int from_columns = halved(faces[0].width, level), from_rows = halved(faces[0].height, level);
  int columns = halved(from_columns, 1), rows = halved(from_rows, 1);
  FOR_REGION(x, y, columns, rows)
  for (int plane = 0; plane < 4; plane++)
    out[((size_t)plane * rows + y) * columns + x] = reduced(Floats{in, from_columns, from_rows}, from_columns, from_rows, plane, x, y);
}

// The sum at level `level` of its pyramid `fine` and the level above, `half`, whose sum is `sum` [3, rows, columns]; null at the coarsest level:
// all of `fine` is then one band.
extern "C" __global__ void bands_sum(const Face* faces, const float* fine, const float* half, const float* sum, int level, float* out) {
  int columns = halved(faces[0].width, level), rows = halved(faces[0].height, level);
  int across = halved(columns, 1), down = halved(rows, 1);
  Floats own{fine, columns, rows};
  FOR_REGION(x, y, columns, rows)
  for (int plane = 0; plane < 3; plane++)
    out[((size_t)plane * rows + y) * columns + x] =
        sum ? collapsed(own, Floats{half, across, down}, Floats{sum, across, down}, plane, x, y) : own.at(plane, x, y) * own.at(3, x, y);
}

// Level 0, onto the frame.
extern "C" __global__ void bands_lay(u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels, const u8* alpha,
                                     const u8* limit, const float* half, const float* sum) {
  const Face& face = faces[0];
  Bytes fine{{frame, width, height, pitch}, face, pixels, alpha, limit};
  int across = halved(face.width, 1), down = halved(face.height, 1);
  FOR_REGION(x, y, face.width, face.height) {
    u8* pixel = fine.picture.at(face.left + x, face.top + y);
    float added[3];
    for (int c = 0; c < 3; c++) added[c] = collapsed(fine, Floats{half, across, down}, Floats{sum, across, down}, c, x, y);
    for (int c = 0; c < 3; c++) pixel[c] = level(pixel[c] + added[c] * face.opacity / 256);
  }
}
