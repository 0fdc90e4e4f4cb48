// Masks: what of a box is to be seen. A mask is made or lowered in a buffer u8 [height, width] of the box, which the paste then keeps to.
#include "shapes.cuh"

#define LARGE 3e38f

__device__ void lower(u8* place, int value, int first) { *place = first ? value : min((int)*place, value); }

// By shapes: `face.shapes` of them, float [shapes, 6]: first segment, count of segments, ramp; `segments` in pixels of the frame. `first`: the
// buffer has no content yet.
extern "C" __global__ void mask_shapes(u8* mask, const Face* faces, const float* segments, const float* shapes, int first) {
  const Face& face = faces[0];
  FOR_REGION(x, y, face.width, face.height) {
    int least = 255;
    for (int k = 0; k < face.shapes; k++) {
      const float* shape = shapes + 6 * k;
      const float* own = segments + SEGMENT * (int)shape[0];
      least = min(least, shape_level(own, (int)shape[1], shape + 2, face.left + x, face.top + y));
    }
    lower(mask + (size_t)y * face.width + x, least, first);
  }
}

// By a mask that a network has made in its own crop [side, side]; its border goes on outside.
extern "C" __global__ void mask_lower(u8* mask, const Face* faces, const u8* made, int side, int first) {
  const Face& face = faces[0];
  FOR_REGION(x, y, face.width, face.height)
  lower(mask + (size_t)y * face.width + x, level(bilinear_u8(made, side, side, moved(face.to_mask, x, y))), first);
}

// Shares float [count] in [0, 1] as levels; what is no number keeps nothing.
extern "C" __global__ void mask_levels(const float* shares, int count, u8* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = level(255 * shares[i]);
}

// Of scores float [classes, height * step, width * step], every step-th pixel: 255 where one of the `kept` classes (u8 [classes]) is highest.
extern "C" __global__ void mask_classes(const float* scores, int classes, int width, int height, int step, const u8* kept, u8* out) {
  PIXEL;
  if (x >= width || y >= height) return;
  float inside = -LARGE, outside = -LARGE;
  for (int k = 0; k < classes; k++) {
    float score = scores[((size_t)k * height * step + y * step) * width * step + x * step];
    float& best = kept[k] ? inside : outside;
    best = fmaxf(best, score);
  }
  out[(size_t)y * width + x] = inside > outside ? 255 : 0;
}

__device__ int reflected(int place, int count) {  // cv2's BORDER_REFLECT_101
  while (place < 0 || place >= count) {
    if (count == 1) return 0;
    place = place < 0 ? -place : 2 * (count - 1) - place;
  }
  return place;
}

// A separable blur of bytes, rows first; rounded once, at the end.
extern "C" __global__ void mask_blur_rows(const u8* in, int width, int height, const float* weights, int radius, float* out) {
  PIXEL;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int i = -radius; i <= radius; i++) sum += weights[i + radius] * in[(size_t)y * width + reflected(x + i, width)];
  out[(size_t)y * width + x] = sum;
}
// The columns, and then the upper half of the range drawn out over all of it: engines/mask/lower.py's softened.
extern "C" __global__ void mask_blur_columns(const float* in, int width, int height, const float* weights, int radius, u8* out) {
  PIXEL;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int i = -radius; i <= radius; i++) sum += weights[i + radius] * in[(size_t)reflected(y + i, height) * width + x];
  int blurred = level(sum);
  out[(size_t)y * width + x] = (u8)clamped(2 * blurred - 255, 0, 255);
}

// Least value within `radius` steps across and down together (a diamond): cv2.erode with a cross, so many times. float [height, width].
extern "C" __global__ void mask_erode(const float* in, int width, int height, int radius, float* out) {
  PIXEL;
  if (x >= width || y >= height) return;
  float least = LARGE;
  for (int j = -radius; j <= radius; j++)
    for (int i = abs(j) - radius; i <= radius - abs(j); i++)
      if (x + i >= 0 && x + i < width && y + j >= 0 && y + j < height) least = fminf(least, in[(size_t)(y + j) * width + x + i]);
  out[(size_t)y * width + x] = least;
}

// One pass of a separable blur of floats [height, width], along rows or (`down`) columns: cv2.GaussianBlur's border.
extern "C" __global__ void blur_pass(const float* in, int width, int height, const float* weights, int radius, int down, float* out) {
  PIXEL;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int i = -radius; i <= radius; i++) {
    int column = down ? x : reflected(x + i, width), row = down ? reflected(y + i, height) : y;
    sum += weights[i + radius] * in[(size_t)row * width + column];
  }
  out[(size_t)y * width + x] = sum;
}
