// What all kernels share: pictures, the record of a face, samplers. Plain CUDA C++17 without a header of its own: NVRTC takes it as it is, a
// host compiler after host.h.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned long long u64;

// A kernel whose threads wait for one another is a row of phases, `PHASE { … }`: all threads of the block have done one before any begins
// the next. What passes from one to the next lies in __shared__ memory or in arrays, so that a host compiler can run each as a loop over the
// threads; here too it is a loop, of one turn, so that `continue` ends a thread's share of a phase in both.
#ifndef PHASE
#define PHASE for (bool once = (__syncthreads(), true); once; once = false)
#endif

#define PIXEL int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y

// Every pixel of a region whose size only the device knows: the grid may be of any size, its threads walk on until the region is done.
#define FOR_REGION(x, y, columns, rows)                                                        \
  for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < (rows); y += gridDim.y * blockDim.y) \
    for (int x = blockIdx.x * blockDim.x + threadIdx.x; x < (columns); x += gridDim.x * blockDim.x)

// Bytes of a picture: BGR, row after row, `pitch` bytes apart.
struct Picture {
  u8* pixels;
  int width, height, pitch;
  __device__ u8* at(int x, int y) const { return pixels + (size_t)y * pitch + 3 * x; }
};

// What differs from face to face and from frame to frame. It lies in device memory, so that a captured graph holds for every frame.
// rt/compose/kernels/records.py has the same layout: change both.
struct Face {
  int left, top, width, height;  // the box of the frame that is touched; inside of the frame
  float to_crop[6];              // pixel of the box -> pixel of the crop, averaged by `paste_factor`
  int paste_factor;
  float to_source[6];  // pixel of the crop -> pixel of the frame's part below, averaged by `crop_factor`
  int crop_left, crop_top, crop_columns, crop_rows, crop_factor;
  int crop_side, crop_boost;             // of a network's picture, and so many of them a side of the crop
  int crop_planes;                       // 1: the network takes planes of R, G, B; 0: pixels of B, G, R
  int crop_place;                        // where among all crops this one begins, floats
  int shapes, masks;                     // what is drawn of masks, and how many of networks there are
  int opacity;                           // 0 … 256
  float given_scale[3], given_shift[3];  // level of R, G, B -> the network's value
  float made_scale[3], made_shift[3];    // the network's value of R, G, B -> level
};

__device__ inline int clamped(int value, int low, int high) { return value < low ? low : value > high ? high : value; }
__device__ inline float clamped(float value, float low, float high) { return fminf(fmaxf(value, low), high); }  // NaN: low

// Nearest level; what is no number becomes 0.
__device__ inline u8 level(float value) { return (u8)clamped(value + 0.5f, 0.0f, 255.0f); }

__device__ inline float2 moved(const float* m, float x, float y) {
  return make_float2(m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]);
}

// The four taps of bilinear sampling at a place, and their weights. Places beyond any picture are one such place.
struct Taps {
  int x, y;
  float w[4];  // (x, y), (x + 1, y), (x, y + 1), (x + 1, y + 1)
  __device__ Taps(float2 at) {
    float left = floorf(at.x), top = floorf(at.y), fx = at.x - left, fy = at.y - top;
    x = (int)clamped(left, -1e6f, 1e6f), y = (int)clamped(top, -1e6f, 1e6f);
    w[0] = (1 - fx) * (1 - fy), w[1] = fx * (1 - fy), w[2] = (1 - fx) * fy, w[3] = fx * fy;
  }
  __device__ int column(int tap) const { return x + (tap & 1); }
  __device__ int row(int tap) const { return y + (tap >> 1); }
};

// Bilinear sample of one channel of bytes [height, width, channels]; its border goes on outside.
__device__ inline float bilinear_u8(const u8* values, int width, int height, float2 at, int channels = 1, int channel = 0) {
  Taps taps(at);
  float sum = 0;
  for (int k = 0; k < 4; k++) {
    size_t place = (size_t)clamped(taps.row(k), 0, height - 1) * width + clamped(taps.column(k), 0, width - 1);
    sum += taps.w[k] * values[place * channels + channel];
  }
  return sum;
}
