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

// Crops for networks, of any sizes at once: each from its place in `out` on, float. Planes: [boost * boost, 3, side, side] in R, G, B;
// picture (i, j) has every boost-th pixel from row i and column j on of a crop of side * boost. Pixels: [side, side, 3] in B, G, R. One thread
// a pixel of the largest crop.
extern "C" __global__ void crop_to_tensor(const u8* frame, int width, int height, int pitch, const Face* faces, int count, float* out) {
  PIXEL;
  if ((int)blockIdx.z >= count) return;
  const Face& face = faces[blockIdx.z];
  int side = face.crop_side, boost = face.crop_boost;
  if (x >= side * boost || y >= side * boost) return;
  CropPixel pixel(Picture{(u8*)frame, width, height, pitch}, face, x, y);
  float* own = out + face.crop_place;
  size_t part = (size_t)(y % boost) * boost + x % boost;
  for (int c = 0; c < 3; c++) {
    if (face.crop_planes) own[((part * 3 + c) * side + y / boost) * side + x / boost] = pixel.rgb[c];
    else own[((size_t)y * side + x) * 3 + 2 - c] = pixel.rgb[c];
  }
}
