// Masks that networks make in their own crops: engines/mask/lower.py's softened, of all masks of a frame at once.
#include "pixels.cuh"

#define TILE 32
#define RADIUS_MAX 16
#define THREADS 256
#define LARGE 3e38f
#define EACH(name, count) for (int name = threadIdx.x; name < (count); name += THREADS)

__device__ int reflected(int place, int count) {  // cv2's BORDER_REFLECT_101
  while (place < 0 || place >= count) {
    if (count == 1) return 0;
    place = place < 0 ? -place : 2 * (count - 1) - place;
  }
  return place;
}

// How one is made: see rt/compose/kernels/records.py's set_softening.
struct Softening {
  int place, classes, side, step;
  unsigned kept[8];
  // Of a share in [0, 1], its level; of scores float [classes, side * step, side * step], 255 where one of the kept classes is highest.
  // What is no number keeps nothing.
  __device__ int level_at(const float* made, int x, int y) const {
    size_t whole = (size_t)side * step, at = y * step * whole + x * step;
    if (!classes) return level(255 * made[at]);
    float inside = -LARGE, outside = -LARGE;
    for (int k = 0; k < classes; k++) {
      float& best = kept[k / 32] >> k % 32 & 1 ? inside : outside;
      best = fmaxf(best, made[k * whole * whole + at]);
    }
    return inside > outside ? 255 : 0;
  }
};

// A block of 256 threads makes a tile of 32 x 32 pixels of the mask blockIdx.z. `masks`: Softening [count]; `weights`: float [2 * radius + 1],
// whole 256ths: sums are whole numbers below 2^24, which float has to the bit. `out`: u8 [count, side, side].
extern "C" __global__ void mask_soften(const float* made, const int* masks, int count, const float* weights, int radius, u8* out) {
  __shared__ u8 levels[TILE + 2 * RADIUS_MAX][TILE + 2 * RADIUS_MAX];
  __shared__ float rows[TILE + 2 * RADIUS_MAX][TILE];
  if ((int)blockIdx.z >= count) return;
  const Softening& mask = ((const Softening*)masks)[blockIdx.z];
  const float* own = made + mask.place;
  int side = mask.side, left = blockIdx.x * TILE, top = blockIdx.y * TILE, around = TILE + 2 * radius;
  if (left >= side || top >= side) return;
  PHASE {
    EACH(i, around * around) {
      int x = reflected(left + i % around - radius, side), y = reflected(top + i / around - radius, side);
      levels[i / around][i % around] = (u8)mask.level_at(own, x, y);
    }
  }
  PHASE {
    EACH(i, around * TILE) {
      float sum = 0;
      for (int k = 0; k <= 2 * radius; k++) sum += weights[k] * levels[i / TILE][i % TILE + k];
      rows[i / TILE][i % TILE] = sum;
    }
  }
  PHASE {
    EACH(i, TILE * TILE) {
      int x = left + i % TILE, y = top + i / TILE;
      if (x >= side || y >= side) continue;
      float sum = 0;
      for (int k = 0; k <= 2 * radius; k++) sum += weights[k] * rows[i / TILE + k][i % TILE];
      int blurred = min(255, (int)(sum + 32768) >> 16);
      out[((size_t)blockIdx.z * side + y) * side + x] = (u8)clamped(2 * blurred - 255, 0, 255);  // the upper half of the range, drawn out over it
    }
  }
}
