// Colours between what cameras and codecs speak (NV12, P010, YUY2, BGR) and planar float RGB in [0, 1], or packed BGR bytes.
// ITU-T H.273: Y' = kr R + (1 - kr - kb) G + kb B, Cb = (B - Y') / (2 (1 - kb)), Cr = (R - Y') / (2 (1 - kr)); `standard` is 601 or 709.
// Chroma stands for the two or four pixels that it lies between: repeated on the way in, averaged on the way out.
#include "pixels.cuh"

struct Rgb {
  float r, g, b;
};

struct Yuv {
  float y, u, v;  // y in [0, 1]; u, v in [-0.5, 0.5]
};

struct Matrix {
  float kr, kb;
  __device__ Matrix(int standard) : kr(standard == 601 ? 0.299f : 0.2126f), kb(standard == 601 ? 0.114f : 0.0722f) {}
  __device__ Rgb rgb(Yuv in) const {
    float r = in.y + 2 * (1 - kr) * in.v, b = in.y + 2 * (1 - kb) * in.u;
    return {r, (in.y - kr * r - kb * b) / (1 - kr - kb), b};
  }
  __device__ Yuv yuv(Rgb in) const {
    float y = kr * in.r + (1 - kr - kb) * in.g + kb * in.b;
    return {y, (in.b - y) / (2 * (1 - kb)), (in.r - y) / (2 * (1 - kr))};
  }
};

// Numbers of `bits` bits: limited range has luma 16 … 235 and chroma 16 … 240 in units of 2^(bits - 8), full range all of them.
struct Range {
  float black, luma, middle, chroma, top;
  __device__ Range(int full, int bits) {
    float unit = 1 << (bits - 8);
    top = (1 << bits) - 1;
    black = full ? 0 : 16 * unit, luma = full ? top : 219 * unit;
    middle = 128 * unit, chroma = full ? top : 224 * unit;
  }
  __device__ Yuv read(float y, float u, float v) const { return {(y - black) / luma, (u - middle) / chroma, (v - middle) / chroma}; }
  __device__ int luma_code(float y) const { return (int)clamped(y * luma + black + 0.5f, 0.0f, top); }
  __device__ int chroma_code(float c) const { return (int)clamped(c * chroma + middle + 0.5f, 0.0f, top); }
};

// --- where colours go and come from ---

struct Planes {  // float [3, height, width] RGB
  float* values;
  int width, height, pitch;  // pitch: floats from row to row
  __device__ float* at(int plane, int x, int y) const { return values + ((size_t)plane * height + y) * pitch + x; }
  __device__ void put(int x, int y, Rgb in) const { *at(0, x, y) = in.r, *at(1, x, y) = in.g, *at(2, x, y) = in.b; }
  __device__ Rgb get(int x, int y) const { return {*at(0, x, y), *at(1, x, y), *at(2, x, y)}; }
};

struct Packed {  // u8 [height, width, 3] BGR
  Picture picture;
  __device__ void put(int x, int y, Rgb in) const {
    u8* pixel = picture.at(x, y);
    pixel[0] = level(255 * in.b), pixel[1] = level(255 * in.g), pixel[2] = level(255 * in.r);
  }
  __device__ Rgb get(int x, int y) const {
    const u8* pixel = picture.at(x, y);
    return {pixel[2] / 255.0f, pixel[1] / 255.0f, pixel[0] / 255.0f};
  }
};

// --- one thread a pixel on the way in; one thread a cell of shared chroma on the way out ---

// `Code`: u8 for NV12, u16 for P010, whose ten bits are the upper ones. Pitches in bytes.
template <class Code>
__device__ int code_at(const u8* plane, int pitch, int x, int y) {
  int code = ((const Code*)(plane + (size_t)y * pitch))[x];
  return sizeof(Code) == 2 ? code >> 6 : code;
}
template <class Code>
__device__ void put_code(u8* plane, int pitch, int x, int y, int code) {
  ((Code*)(plane + (size_t)y * pitch))[x] = (Code)(sizeof(Code) == 2 ? code << 6 : code);
}

template <class Code, class Out>
__device__ void from_biplanar(const u8* luma, int luma_pitch, const u8* chroma, int chroma_pitch, int width, int height, int standard,
                              int full, Out out) {
  PIXEL;
  if (x >= width || y >= height) return;
  Range range(full, sizeof(Code) == 2 ? 10 : 8);
  int pair = x / 2 * 2;
  Yuv yuv = range.read(code_at<Code>(luma, luma_pitch, x, y), code_at<Code>(chroma, chroma_pitch, pair, y / 2),
                       code_at<Code>(chroma, chroma_pitch, pair + 1, y / 2));
  out.put(x, y, Matrix(standard).rgb(yuv));
}

template <class Code, class In>
__device__ void to_biplanar(In in, int width, int height, int standard, int full, u8* luma, int luma_pitch, u8* chroma, int chroma_pitch) {
  PIXEL;
  if (2 * x >= width || 2 * y >= height) return;
  Range range(full, sizeof(Code) == 2 ? 10 : 8);
  Matrix matrix(standard);
  float u = 0, v = 0;
  int count = 0;
  for (int row = 2 * y; row < min(2 * y + 2, height); row++)
    for (int column = 2 * x; column < min(2 * x + 2, width); column++, count++) {
      Yuv yuv = matrix.yuv(in.get(column, row));
      put_code<Code>(luma, luma_pitch, column, row, range.luma_code(yuv.y));
      u += yuv.u, v += yuv.v;
    }
  put_code<Code>(chroma, chroma_pitch, 2 * x, y, range.chroma_code(u / count));
  put_code<Code>(chroma, chroma_pitch, 2 * x + 1, y, range.chroma_code(v / count));
}

template <class Out>
__device__ void from_yuy2(const u8* codes, int pitch, int width, int height, int standard, int full, Out out) {
  PIXEL;
  if (x >= width || y >= height) return;
  const u8* pair = codes + (size_t)y * pitch + x / 2 * 4;  // Y0 U Y1 V
  out.put(x, y, Matrix(standard).rgb(Range(full, 8).read(pair[x % 2 * 2], pair[1], pair[3])));
}

template <class In>
__device__ void to_yuy2(In in, int width, int height, int standard, int full, u8* codes, int pitch) {
  PIXEL;
  if (2 * x >= width || y >= height) return;
  Range range(full, 8);
  Matrix matrix(standard);
  Yuv first = matrix.yuv(in.get(2 * x, y)), second = matrix.yuv(in.get(min(2 * x + 1, width - 1), y));
  u8* pair = codes + (size_t)y * pitch + 4 * x;
  pair[0] = range.luma_code(first.y), pair[1] = range.chroma_code((first.u + second.u) / 2);
  pair[2] = range.luma_code(second.y), pair[3] = range.chroma_code((first.v + second.v) / 2);
}

// `name`_to_planes, `name`_to_bgr and the ways back. Pitches of bytes in bytes, of planes in floats.
#define BIPLANAR(name, Code)                                                                                                            \
  extern "C" __global__ void name##_to_planes(const u8* luma, int luma_pitch, const u8* chroma, int chroma_pitch, int width, int height, \
                                              int standard, int full, float* planes, int pitch) {                                       \
    from_biplanar<Code>(luma, luma_pitch, chroma, chroma_pitch, width, height, standard, full, Planes{planes, width, height, pitch});   \
  }                                                                                                                                     \
  extern "C" __global__ void name##_to_bgr(const u8* luma, int luma_pitch, const u8* chroma, int chroma_pitch, int width, int height,    \
                                           int standard, int full, u8* frame, int pitch) {                                              \
    from_biplanar<Code>(luma, luma_pitch, chroma, chroma_pitch, width, height, standard, full,                                          \
                        Packed{{frame, width, height, pitch}});                                                                         \
  }                                                                                                                                     \
  extern "C" __global__ void planes_to_##name(const float* planes, int pitch, int width, int height, int standard, int full, u8* luma,  \
                                              int luma_pitch, u8* chroma, int chroma_pitch) {                                           \
    to_biplanar<Code>(Planes{(float*)planes, width, height, pitch}, width, height, standard, full, luma, luma_pitch, chroma,            \
                      chroma_pitch);                                                                                                    \
  }                                                                                                                                     \
  extern "C" __global__ void bgr_to_##name(const u8* frame, int pitch, int width, int height, int standard, int full, u8* luma,         \
                                           int luma_pitch, u8* chroma, int chroma_pitch) {                                              \
    to_biplanar<Code>(Packed{{(u8*)frame, width, height, pitch}}, width, height, standard, full, luma, luma_pitch, chroma,              \
                      chroma_pitch);                                                                                                    \
  }

BIPLANAR(nv12, u8)
BIPLANAR(p010, u16)

extern "C" __global__ void yuy2_to_planes(const u8* codes, int codes_pitch, int width, int height, int standard, int full, float* planes,
                                          int pitch) {
  from_yuy2(codes, codes_pitch, width, height, standard, full, Planes{planes, width, height, pitch});
}
extern "C" __global__ void yuy2_to_bgr(const u8* codes, int codes_pitch, int width, int height, int standard, int full, u8* frame,
                                       int pitch) {
  from_yuy2(codes, codes_pitch, width, height, standard, full, Packed{{frame, width, height, pitch}});
}
extern "C" __global__ void planes_to_yuy2(const float* planes, int pitch, int width, int height, int standard, int full, u8* codes,
                                          int codes_pitch) {
  to_yuy2(Planes{(float*)planes, width, height, pitch}, width, height, standard, full, codes, codes_pitch);
}
extern "C" __global__ void bgr_to_yuy2(const u8* frame, int pitch, int width, int height, int standard, int full, u8* codes,
                                       int codes_pitch) {
  to_yuy2(Packed{{(u8*)frame, width, height, pitch}}, width, height, standard, full, codes, codes_pitch);
}

// Packed bytes and planes; `rgb` is 1 where the bytes are R, G, B.
extern "C" __global__ void bgr_to_planes(const u8* frame, int frame_pitch, int width, int height, int rgb, float* planes, int pitch) {
  PIXEL;
  if (x >= width || y >= height) return;
  Rgb in = Packed{{(u8*)frame, width, height, frame_pitch}}.get(x, y);
  Planes{planes, width, height, pitch}.put(x, y, rgb ? Rgb{in.b, in.g, in.r} : in);
}
extern "C" __global__ void planes_to_bgr(const float* planes, int pitch, int width, int height, int rgb, u8* frame, int frame_pitch) {
  PIXEL;
  if (x >= width || y >= height) return;
  Rgb in = Planes{(float*)planes, width, height, pitch}.get(x, y);
  Packed{{frame, width, height, frame_pitch}}.put(x, y, rgb ? Rgb{in.b, in.g, in.r} : in);
}
