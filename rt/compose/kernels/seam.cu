// The membrane of rt/compose/host.py's match_seam: the step between frame and patch along the seam, continued smoothly over the inside.
// Works on cells, which are averages over `side` pixels each way; at most 48 of them each way.
#include "sources.cuh"

#define LEVELS_MAX 8
#define LEAST_ALPHA 8  // the ring in which the two are compared
#define MOST_ALPHA 200
#define SPREAD 24.0f  // levels by which the step may differ from its median
#define THREADS 512

// One level of the pyramid that is filled by pull and push: values [rows, columns, 3] times weight, and weight [rows, columns].
struct Level {
  float *values, *weight;
  int columns, rows;
  __device__ int count() const { return columns * rows; }
};

// How much of pixel `i` lies in the stretch that a pixel of the half covers: cv2's INTER_AREA.
__device__ float overlap(int i, float from, float to) { return fmaxf(0.0f, fminf(i + 1.0f, to) - fmaxf((float)i, from)) / (to - from); }

__device__ void pull(const Level& fine, const Level& half, int place) {
  float across = (float)fine.columns / half.columns, down = (float)fine.rows / half.rows;
  float left = place % half.columns * across, top = place / half.columns * down;
  float few[3] = {0, 0, 0}, some = 0;
  for (int y = (int)top; y < fine.rows && y < top + down; y++)
    for (int x = (int)left; x < fine.columns && x < left + across; x++) {
      float share = overlap(x, left, left + across) * overlap(y, top, top + down);
      int from = y * fine.columns + x;
      for (int c = 0; c < 3; c++) few[c] += share * fine.values[3 * from + c];
      some += share * fine.weight[from];
    }
  float known = fminf(1.0f, 4 * some);  // one cell of four is enough to know the coarse one
  for (int c = 0; c < 3; c++) half.values[3 * place + c] = few[c] * (known / fmaxf(some, 1e-6f));
  half.weight[place] = known;
}

__device__ void push(const Level& fine, const Level& half, int place) {
  float x = (place % fine.columns + 0.5f) * half.columns / fine.columns - 0.5f;
  float y = (place / fine.columns + 0.5f) * half.rows / fine.rows - 0.5f;
  Taps taps(make_float2(x, y));
  for (int c = 0; c < 3; c++) {
    float rest = 0;
    for (int k = 0; k < 4; k++) {
      int from = clamped(taps.row(k), 0, half.rows - 1) * half.columns + clamped(taps.column(k), 0, half.columns - 1);
      rest += taps.w[k] * half.values[3 * from + c];
    }
    fine.values[3 * place + c] += rest * (1 - fine.weight[place]);
  }
}

#define EACH(name, count) for (int name = threadIdx.x; name < (count); name += THREADS)

__device__ bool in_ring(const u8* cell) { return cell[6] >= LEAST_ALPHA && cell[6] <= MOST_ALPHA; }

// The step from patch to frame, by channel, as it is in the ring: what differs more from its median is hair or a hand.
struct Steps {
  int counts[3][512];  // how often each step from -255 to 255 is seen in the ring
  float low[3], high[3];  // the two in the middle, whose mean is the median
  int ring;               // cells in it

  __device__ float of(const u8* cell, int c) const {
    float middle = (low[c] + high[c]) / 2;
    return clamped((float)(cell[c] - cell[3 + c]), middle - SPREAD, middle + SPREAD);
  }
};

// Phases of a block that fills `steps`, which lies in shared memory, from `count` cells.
__device__ void learn(Steps& steps, const u8* cells, int count) {
  PHASE {
    EACH(i, 3 * 512) steps.counts[i / 512][i % 512] = 0;
    if (threadIdx.x == 0) steps.ring = 0;
  }
  PHASE {
    EACH(i, count) {
      const u8* cell = cells + 7 * i;
      if (!in_ring(cell)) continue;
      atomicAdd(&steps.ring, 1);
      for (int c = 0; c < 3; c++) atomicAdd(&steps.counts[c][cell[c] - cell[3 + c] + 255], 1);
    }
  }
  PHASE {
    EACH(i, 3 * 512) {
      int c = i / 512, step = i % 512, before = 0;
      for (int k = 0; k < step; k++) before += steps.counts[c][k];
      int after = before + steps.counts[c][step];
      if (before <= (steps.ring - 1) / 2 && (steps.ring - 1) / 2 < after) steps.low[c] = (float)(step - 255);
      if (before <= steps.ring / 2 && steps.ring / 2 < after) steps.high[c] = (float)(step - 255);
    }
  }
}

__device__ u8 membrane_level(float step) { return (u8)clamped(rintf(step) + 128, 0.0f, 255.0f); }

// One block. `strength`: share of the step that is taken away. `scratch`: float [4 * 4096]. `membrane`: u8 [rows, columns, 3], 128 + levels;
// 128 everywhere where there is no ring.
extern "C" __global__ void seam_membrane(const u8* cells, const Face* faces, float strength, float* scratch, u8* membrane) {
  __shared__ Steps steps;
  int columns = Cells(faces[0]).columns, rows = Cells(faces[0]).rows;
  Level levels[LEVELS_MAX];
  int last = 0;
  for (levels[0] = {scratch, scratch + 3 * columns * rows, columns, rows}; levels[last].count() > 1; last++) {
    const Level& fine = levels[last];
    int across = (fine.columns + 1) / 2, down = (fine.rows + 1) / 2;
    float* next = fine.weight + fine.count();
    levels[last + 1] = {next, next + 3 * across * down, across, down};
  }
  const Level& finest = levels[0];

  learn(steps, cells, finest.count());
  PHASE {
    EACH(i, finest.count()) {
      const u8* cell = cells + 7 * i;
      finest.weight[i] = in_ring(cell) ? 1.0f : 0.0f;
      for (int c = 0; c < 3; c++) finest.values[3 * i + c] = in_ring(cell) ? steps.of(cell, c) : 0.0f;
    }
  }
  for (int k = 0; k < last; k++) PHASE {
      EACH(i, levels[k + 1].count()) pull(levels[k], levels[k + 1], i);
    }
  PHASE {
    if (threadIdx.x == 0)
      for (int c = 0; c < 3; c++) levels[last].values[c] /= fmaxf(levels[last].weight[0], 1e-6f);
  }
  for (int k = last; k > 0; k--) PHASE {
      EACH(i, levels[k - 1].count()) push(levels[k - 1], levels[k], i);
    }
  PHASE {
    EACH(i, 3 * finest.count()) membrane[i] = steps.ring ? membrane_level(strength * finest.values[i]) : 128;
  }
}

// Sum of a row or column of [rows, columns, 3] with sin(pi (k + 1) (i + 1) / (count + 1)): a sine transform (DST-I), which is its own inverse
// but for the factor (count + 1) / 2. `stride`: from one of its numbers to the next. At most 48 of them: no fast transform is needed.
__device__ float sine_sum(const float* values, int count, int stride, int k) {
  float sum = 0, turn = 1.0f / (count + 1);
  for (int i = 0; i < count; i++) {
    int half_turns = (k + 1) * (i + 1) % (2 * (count + 1));  // kept small: sinpif of a large number is no better, but sinf is worse
    sum += values[(size_t)i * stride] * sinf(3.14159265f * half_turns * turn);
  }
  return sum;
}

// The same membrane by gradients (Perez et al. 2003, "Poisson image editing"), whose edge is the patch's box. With f the frame, p the patch,
// a its alpha and d = f - p, the picture u whose gradients are those of f and p mixed by a has u = f - a d + s, where the Laplacian of s is
// div(d grad a) and s is 0 at the edge: smooth, so that cells are enough. To p is added u - p = s + (1 - a) d.
// One block; arguments as of seam_membrane.
extern "C" __global__ void seam_poisson(const u8* cells, const Face* faces, float strength, float* scratch, u8* membrane) {
  __shared__ Steps steps;
  int columns = Cells(faces[0]).columns, rows = Cells(faces[0]).rows;
  int count = columns * rows;
  float *one = scratch, *other = scratch + 3 * count;
  learn(steps, cells, count);
  PHASE {
    EACH(i, count) {
      int x = i % columns, y = i / columns;
      const u8* cell = cells + 7 * i;
      float sum[3] = {0, 0, 0};
      for (int k = 0; k < 4; k++) {
        int to_x = x + (k == 0) - (k == 1), to_y = y + (k == 2) - (k == 3);
        bool outside = to_x < 0 || to_y < 0 || to_x >= columns || to_y >= rows;  // nothing of the patch is seen there
        const u8* next = outside ? cell : cells + 7 * (to_y * columns + to_x);
        float rise = ((outside ? 0 : next[6]) - cell[6]) / 255.0f;
        for (int c = 0; c < 3; c++) sum[c] += rise * (steps.of(cell, c) + steps.of(next, c)) / 2;
      }
      for (int c = 0; c < 3; c++) one[3 * i + c] = sum[c];
    }
  }
  PHASE {
    EACH(i, 3 * count) other[i] = sine_sum(one + i / 3 / columns * columns * 3 + i % 3, columns, 3, i / 3 % columns);
  }
  PHASE {
    EACH(i, 3 * count) {
      int x = i / 3 % columns, y = i / 3 / columns;
      float across = 2 * cosf(3.14159265f * (x + 1) / (columns + 1)) - 2, down = 2 * cosf(3.14159265f * (y + 1) / (rows + 1)) - 2;
      one[i] = sine_sum(other + 3 * x + i % 3, rows, 3 * columns, y) / (across + down) * 4 / ((columns + 1) * (rows + 1));
    }
  }
  PHASE {
    EACH(i, 3 * count) other[i] = sine_sum(one + i / 3 / columns * columns * 3 + i % 3, columns, 3, i / 3 % columns);
  }
  PHASE {
    EACH(i, 3 * count) {
      const u8* cell = cells + 7 * (i / 3);
      float smooth = sine_sum(other + 3 * (i / 3 % columns) + i % 3, rows, 3 * columns, i / 3 / columns);
      membrane[i] = steps.ring ? membrane_level(strength * (smooth + (1 - cell[6] / 255.0f) * steps.of(cell, i % 3))) : 128;
    }
  }
}
