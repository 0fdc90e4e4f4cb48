// What all kernels share: pictures, the record of a face, samplers, and the two kinds of source that are laid over a frame.
// Plain CUDA C++17 without a header of its own: NVRTC and, over the tests' shim, a host compiler take the same text.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned long long u64;

// A kernel whose threads wait for one another is a row of phases, `PHASE { … }`: all threads of the block have done one before any begins
// the next. What passes from one to the next lies in __shared__ memory or in arrays, so that a host compiler can run each as a loop.
#ifndef PHASE
#define PHASE __syncthreads();
#endif

#define PIXEL int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y

// Bytes of a picture: BGR, row after row, `pitch` bytes apart.
struct Picture {
  u8* pixels;
  int width, height, pitch;
  __device__ u8* at(int x, int y) const { return pixels + (size_t)y * pitch + 3 * x; }
};

// What differs from face to face and from frame to frame. It lies in device memory, so that a captured graph holds for every frame.
// rt/compose/kernels/records.py has the same layout: change both.
struct Face {
  int left, top, width, height;   // the box of the frame that is touched; inside of the frame
  float to_crop[6];               // pixel of the box -> pixel of the crop, averaged by `paste_factor`
  int paste_factor;
  float to_source[6];             // pixel of the crop -> pixel of the frame's part below, averaged by `crop_factor`
  int crop_left, crop_top, crop_columns, crop_rows, crop_factor;
  float to_mask[6];               // pixel of the box -> pixel of the mask
  int opacity;                    // 0 … 256
  float given_scale[3], given_shift[3];  // level of R, G, B -> the network's value
  float made_scale[3], made_shift[3];    // the network's value of R, G, B -> level
  int bgr;                        // 1 where the network's planes are B, G, R
};

// Every pixel of a region whose size only the device knows: the grid is fixed, its threads walk on until the region is done.
#define FOR_REGION(x, y, columns, rows)                                                                \
  for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < (rows); y += gridDim.y * blockDim.y)         \
    for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < (columns); x += gridDim.x * blockDim.x)

__device__ inline int clamped(int value, int low, int high) { return value < low ? low : value > high ? high : value; }
__device__ inline float clamped(float value, float low, float high) { return fminf(fmaxf(value, low), high); }  // NaN: low

// Nearest level; what is no number becomes 0.
__device__ inline u8 level(float value) { return (u8)clamped(value + 0.5f, 0.0f, 255.0f); }

__device__ inline float2 moved(const float* m, float x, float y) {
  return make_float2(m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]);
}

// The four taps of bilinear sampling at a place, and their weights.
struct Taps {
  int x, y;
  float w[4];  // (x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)
  __device__ Taps(float2 at) {
    float left = floorf(at.x), top = floorf(at.y), fx = at.x - left, fy = at.y - top;
    x = (int)left, y = (int)top;
    w[0] = (1 - fx) * (1 - fy), w[1] = fx * (1 - fy), w[2] = (1 - fx) * fy, w[3] = fx * fy;
  }
  __device__ int column(int tap) const { return x + (tap & 1); }
  __device__ int row(int tap) const { return y + (tap >> 1); }
};

// Bilinear sample of bytes; its border goes on outside.
__device__ inline float bilinear_u8(const u8* values, int width, int height, float2 at) {
  Taps taps(at);
  float sum = 0;
  for (int k = 0; k < 4; k++)
    sum += taps.w[k] * values[clamped(taps.row(k), 0, height - 1) * width + clamped(taps.column(k), 0, width - 1)];
  return sum;
}

// What limits a source: a mask of a network, in that network's crop. `bytes` may be null.
struct Mask {
  const u8* bytes;
  int side;
  __device__ int limit(const Face& face, int x, int y, int alpha) const {
    if (!bytes || !alpha) return alpha;
    return min(alpha, (int)level(bilinear_u8(bytes, side, side, moved(face.to_mask, x, y))));
  }
};

// Gain and bias of B, G, R by which a source takes the frame's colours. `values` may be null.
struct Fit {
  const float* values;
  __device__ int of(int value, int channel) const { return values ? level(value * values[channel] + values[3 + channel]) : value; }
};

// B, G, R and alpha of one pixel of a source; levels.
struct Colour {
  int c[3], alpha;
};

// A source that is a network's picture, sampled where it is wanted: float [3, side, side].
struct CropSource {
  const float* planes;
  const u8* soft;      // [side, side] alpha of the crop
  const float* shown;  // [side, side] in [0, 1], what the network says is face, or null
  int side;
  Mask mask;
  Fit fit;

  __device__ int crop_level(const Face& face, int channel, size_t place) const {  // channel: 0 B, 1 G, 2 R
    int colour = 2 - channel, plane = face.bgr ? channel : colour;
    return level(planes[(size_t)plane * side * side + place] * face.made_scale[colour] + face.made_shift[colour]);
  }
  __device__ int crop_alpha(size_t place) const {
    int alpha = soft[place];
    return shown ? min(alpha, (int)level(255 * shown[place])) : alpha;
  }
  // A pixel of the crop averaged by `factor`, weighted into `sum`. Rounded as the bytes of a picture would be.
  __device__ void add(const Face& face, int x, int y, float weight, float* sum) const {
    int factor = face.paste_factor, total[4] = {0, 0, 0, 0};
    if (x < 0 || y < 0 || x >= side / factor || y >= side / factor) return;
    for (int j = 0; j < factor; j++)
      for (int i = 0; i < factor; i++) {
        size_t place = (size_t)(y * factor + j) * side + x * factor + i;
        for (int c = 0; c < 3; c++) total[c] += crop_level(face, c, place);
        total[3] += crop_alpha(place);
      }
    for (int c = 0; c < 4; c++) sum[c] += weight * level((float)total[c] / (factor * factor));
  }
  __device__ Colour at(const Face& face, int x, int y) const {
    Taps taps(moved(face.to_crop, x, y));
    float sum[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; k++) add(face, taps.column(k), taps.row(k), taps.w[k], sum);
    Colour out;
    for (int c = 0; c < 3; c++) out.c[c] = fit.of(level(sum[c]), c);
    out.alpha = mask.limit(face, x, y, level(sum[3]));
    return out;
  }
};

// A source that is there as pixels of the box: u8 [height, width, 4] BGRA.
struct PatchSource {
  const u8* patch;
  Mask mask;
  Fit fit;
  __device__ Colour at(const Face& face, int x, int y) const {
    const u8* pixel = patch + ((size_t)y * face.width + x) * 4;
    Colour out;
    for (int c = 0; c < 3; c++) out.c[c] = fit.of(pixel[c], c);
    out.alpha = mask.limit(face, x, y, pixel[3]);
    return out;
  }
};
