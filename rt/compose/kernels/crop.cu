// From the frame to a network: one similarity warp, normalised, planar, a batch of faces at once.
#include "pixels.cuh"

// B, G, R of the frame's part averaged by the face's factor; its border goes on outside. Rounded as the bytes of a picture would be.
__device__ void add_source(const Picture& frame, const Face& face, int x, int y, float weight, float* sum) {
  int factor = face.crop_factor, total[3] = {0, 0, 0};
  x = clamped(x, 0, face.crop_columns - 1), y = clamped(y, 0, face.crop_rows - 1);
  for (int j = 0; j < factor; j++)
    for (int i = 0; i < factor; i++) {
      const u8* pixel = frame.at(face.crop_left + x * factor + i, face.crop_top + y * factor + j);
      for (int c = 0; c < 3; c++) total[c] += pixel[c];
    }
  for (int c = 0; c < 3; c++) sum[c] += weight * level((float)total[c] / (factor * factor));
}

// The crop's pixel as a network wants it, colours in the order R, G, B.
struct CropPixel {
  float rgb[3];
  __device__ CropPixel(const Picture& frame, const Face& face, int x, int y) {
    Taps taps(moved(face.to_source, x, y));
    float sum[3] = {0, 0, 0};
    for (int k = 0; k < 4; k++) add_source(frame, face, taps.column(k), taps.row(k), taps.w[k], sum);
    for (int c = 0; c < 3; c++) rgb[c] = level(sum[2 - c]) * face.given_scale[c] + face.given_shift[c];
  }
};

// tensor: float [faces * boost * boost, 3, side, side] in R, G, B; picture (i, j) of a face has every boost-th pixel from row i and column
// j on of a crop of side * boost. One thread a pixel of that crop.
extern "C" __global__ void crop_to_tensor(const u8* frame, int width, int height, int pitch, const Face* faces, int count, int side,
                                          int boost, float* tensor) {
  PIXEL;
  int number = blockIdx.z;
  if (x >= side * boost || y >= side * boost || number >= count) return;
  CropPixel pixel(Picture{(u8*)frame, width, height, pitch}, faces[number], x, y);
  size_t part = ((size_t)number * boost + y % boost) * boost + x % boost;
  for (int c = 0; c < 3; c++) tensor[((part * 3 + c) * side + y / boost) * side + x / boost] = pixel.rgb[c];
}

// The same for networks that take pixels: float [faces, side, side, 3] in B, G, R.
extern "C" __global__ void crop_to_pixels(const u8* frame, int width, int height, int pitch, const Face* faces, int count, int side,
                                          float* pixels) {
  PIXEL;
  int number = blockIdx.z;
  if (x >= side || y >= side || number >= count) return;
  CropPixel pixel(Picture{(u8*)frame, width, height, pitch}, faces[number], x, y);
  for (int c = 0; c < 3; c++) pixels[(((size_t)number * side + y) * side + x) * 3 + c] = pixel.rgb[2 - c];
}

// An unsharp mask: out = in + amount (in - blurred), by the binomial window of five; the border is repeated. float [planes, side, side].
extern "C" __global__ void sharpen(const float* in, int planes, int side, float amount, float* out) {
  PIXEL;
  int plane = blockIdx.z;
  if (x >= side || y >= side || plane >= planes) return;
  const float binomial[5] = {1 / 16.0f, 4 / 16.0f, 6 / 16.0f, 4 / 16.0f, 1 / 16.0f};
  const float* values = in + (size_t)plane * side * side;
  float blurred = 0;
  for (int j = 0; j < 5; j++)
    for (int i = 0; i < 5; i++)
      blurred += binomial[j] * binomial[i] * values[clamped(y + j - 2, 0, side - 1) * side + clamped(x + i - 2, 0, side - 1)];
  size_t place = (size_t)y * side + x;
  out[(size_t)plane * side * side + place] = values[place] + amount * (values[place] - blurred);
}
