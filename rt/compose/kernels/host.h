// What a host compiler needs to take the kernels' text for C++17: CUDA's words, its built-in variables and the few functions that are used.
// A block runs as loops over its threads, a kernel with phases as one loop for each phase. No speed is meant: it is the proof of a kernel's
// arithmetic, indices and bounds where no GPU is. It cannot show races between blocks; running everything backwards shows most of them.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __shared__ static thread_local

struct float2 { float x, y; };
struct float3 { float x, y, z; };
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }

inline thread_local uint3 threadIdx{}, blockIdx{};
inline thread_local dim3 blockDim{}, gridDim{};

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
inline float rsqrtf(float value) { return 1 / sqrtf(value); }
inline int __float_as_int(float value) { int bits; memcpy(&bits, &value, 4); return bits; }
inline float atomicAdd(float* place, float value) { float old = *place; *place += value; return old; }  // one thread: see below
inline int atomicAdd(int* place, int value) { int old = *place; *place += value; return old; }
inline unsigned long long atomicAdd(unsigned long long* place, unsigned long long value) {
  unsigned long long old = *place;
  *place += value;
  return old;
}
inline unsigned long long atomicMax(unsigned long long* place, unsigned long long value) {
  unsigned long long old = *place;
  if (value > old) *place = value;
  return old;
}

namespace host {
inline thread_local bool backwards = false, in_phases = false, misplaced_phase = false;

inline uint3 place(unsigned index, dim3 shape) {
  return {index % shape.x, index / shape.x % shape.y, index / shape.x / shape.y};
}
inline unsigned nth(unsigned index, unsigned count) { return backwards ? count - 1 - index : index; }

// for (Threads each; each.next();) …: once for every thread of the block.
class Threads {
 public:
  bool next() {
    if (!in_phases && count_) return misplaced_phase = true, false;
    if (index_ == count_) return false;
    threadIdx = place(nth(index_++, count_), blockDim);
    return true;
  }

 private:
  unsigned index_ = 0, count_ = blockDim.x * blockDim.y * blockDim.z;
};

// Runs the grid. Returns 0, or 1 where a kernel has phases and was not declared so.
template <class Kernel>
int launch(const unsigned* shape, int phases, int reversed, Kernel kernel) {
  gridDim = {shape[0], shape[1], shape[2]}, blockDim = {shape[3], shape[4], shape[5]};
  backwards = reversed, misplaced_phase = false;
  unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
  for (unsigned block = 0; block < blocks; block++) {
    blockIdx = place(nth(block, blocks), gridDim);
    in_phases = true;
    if (phases) {
      kernel();
      continue;
    }
    for (Threads each; each.next();) {
      in_phases = false;
      kernel();
      in_phases = true;
    }
  }
  return misplaced_phase;
}
}  // namespace host

#define PHASE for (host::Threads each; each.next();)
