// The membrane of rt/compose/host.py's match_seam: the step between frame and patch along the seam, continued smoothly over the inside.
// Works on cells, which are averages over `side` pixels each way; at most 48 of them each way.
#include "pixels.cuh"

#define CELLS_MAX 48
#define LEVELS_MAX 8
#define LEAST_ALPHA 8  // the ring in which the two are compared
#define MOST_ALPHA 200
#define SPREAD 24.0f  // levels by which the step may differ from its median
#define THREADS 512

// Means of a cell, rounded as cv2.resize(INTER_AREA) rounds them. One block of 32 threads a cell. `cells`: u8 [rows, columns, 7]: B, G, R of
// the frame, B, G, R of the patch, its alpha.
extern "C" __global__ void seam_cells(const u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels,
                                      const u8* alpha, int side, u8* cells) {
  __shared__ int sums[32][7];
  const Face& face = faces[0];
  Picture picture{(u8*)frame, width, height, pitch};
  int columns = min(side, face.width), rows = min(side, face.height), area = columns * rows;
  int left = blockIdx.x * side, top = blockIdx.y * side;
  PHASE {
    int* sum = sums[threadIdx.x];
    for (int k = 0; k < 7; k++) sum[k] = 0;
    for (int i = threadIdx.x; i < area; i += 32) {
      int x = left + i % columns, y = top + i / columns;
      size_t place = (size_t)y * face.width + x;
      const u8* below = picture.at(face.left + x, face.top + y);
      for (int c = 0; c < 3; c++) sum[c] += below[c], sum[3 + c] += pixels[3 * place + c];
      sum[6] += alpha[place];
    }
  }
  PHASE {
    if (threadIdx.x >= 7) continue;
    int total = 0;
    for (int i = 0; i < 32; i++) total += sums[i][threadIdx.x];
    int mean = columns == 2 && rows == 2 ? (total + 2) / 4 : (int)rintf(total * (1.0f / area));
    cells[((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 7 + threadIdx.x] = (u8)mean;
  }
}

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

// One block. `scratch`: float [4 * 4096]. `membrane`: u8 [rows, columns, 3], 128 + levels; 128 everywhere where there is no ring.
extern "C" __global__ void seam_membrane(const u8* cells, int columns, int rows, float* scratch, u8* membrane) {
  __shared__ int counts[3][512];  // how often each step from -255 to 255 is seen in the ring
  __shared__ float low[3], high[3];
  __shared__ int ring;
  Level levels[LEVELS_MAX];
  int last = 0;
  for (levels[0] = {scratch, scratch + 3 * columns * rows, columns, rows}; levels[last].count() > 1; last++) {
    const Level& fine = levels[last];
    int across = (fine.columns + 1) / 2, down = (fine.rows + 1) / 2;
    float* next = fine.weight + fine.count();
    levels[last + 1] = {next, next + 3 * across * down, across, down};
  }
  const Level& finest = levels[0];

  PHASE {
    EACH(i, 3 * 512) counts[i / 512][i % 512] = 0;
    if (threadIdx.x == 0) ring = 0;
  }
  PHASE {
    EACH(i, finest.count()) {
      const u8* cell = cells + 7 * i;
      if (cell[6] < LEAST_ALPHA || cell[6] > MOST_ALPHA) continue;
      atomicAdd(&ring, 1);
      for (int c = 0; c < 3; c++) atomicAdd(&counts[c][cell[c] - cell[3 + c] + 255], 1);
    }
  }
  PHASE {
    EACH(i, 3 * 512) {
      int c = i / 512, step = i % 512, before = 0;
      for (int k = 0; k < step; k++) before += counts[c][k];
      int after = before + counts[c][step];  // the median of an even number is the mean of two
      if (before <= (ring - 1) / 2 && (ring - 1) / 2 < after) low[c] = (float)(step - 255);
      if (before <= ring / 2 && ring / 2 < after) high[c] = (float)(step - 255);
    }
  }
  PHASE {
    EACH(i, finest.count()) {
      const u8* cell = cells + 7 * i;
      bool in_ring = cell[6] >= LEAST_ALPHA && cell[6] <= MOST_ALPHA;
      finest.weight[i] = in_ring ? 1.0f : 0.0f;
      for (int c = 0; c < 3; c++) {
        float middle = (low[c] + high[c]) / 2, step = (float)(cell[c] - cell[3 + c]);
        finest.values[3 * i + c] = in_ring ? clamped(step, middle - SPREAD, middle + SPREAD) : 0.0f;
      }
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
    EACH(i, 3 * finest.count()) membrane[i] = ring ? (u8)clamped(rintf(finest.values[i]) + 128, 0.0f, 255.0f) : 128;
  }
}
