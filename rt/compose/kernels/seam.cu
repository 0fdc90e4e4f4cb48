// How a patch takes the colours of the frame below it: rt/compose/seam.py, on cells, at most 48 of them each way. One block each.
// `cells`: u8 [rows, columns, 7], see make_patch. `strength`: share of the levels that are added. `transfer`: how far mean and contrast go to
// the frame's. `scratch`: float [8 * 4096]. `fit`: float [6], see Fit; may be null, nothing is transferred then. `membrane`: u8 [rows, columns, 3],
// 128 + levels to be added to the patch, once it is fitted.
#include "sources.cuh"

#define LEVELS_MAX 8
#define LEAST_ALPHA 8  // the ring in which the two are compared
#define MOST_ALPHA 200
#define SPREAD 24.0f  // levels by which the step may differ from its median
#define GAIN_MOST 2.0f
#define LEAST_CELLS 12  // a level of bands that has fewer a side is not halved again
#define THREADS 512
#define EACH(name, count) for (int name = threadIdx.x; name < (count); name += THREADS)

// All cells; the patch's colours as they are once they are fitted.
struct Seen {
  const u8* cells;
  Fit fit;
  int columns, rows;
  __device__ Seen(const u8* cells, const Face& face, const float* fit) : cells(cells), fit{fit} {
    Cells grid(face);
    columns = grid.columns, rows = grid.rows;
  }
  __device__ int count() const { return columns * rows; }
  __device__ int alpha(int i) const { return cells[7 * i + 6]; }
  __device__ bool in_ring(int i) const { return alpha(i) >= LEAST_ALPHA && alpha(i) <= MOST_ALPHA; }
  __device__ int step(int i, int c) const { return cells[7 * i + c] - fit.of(cells[7 * i + 3 + c], c); }  // from patch to frame
};

// Sums over all cells, weighted by alpha: of alpha; for B, G, R of the frame and then of the patch, of values and of their squares.
struct Sums {
  u64 of[13];
};

// Phases that fill `fit`: gain and bias by which mean and deviation of each channel become the frame's (Reinhard et al. 2001, "Color transfer
// between images").
__device__ void match(Sums& sums, const u8* cells, int count, float transfer, float* fit) {
  if (!fit) return;
  PHASE {
    if (threadIdx.x < 13) sums.of[threadIdx.x] = 0;
  }
  PHASE {
    u64 own[13] = {0};
    EACH(i, count) {
      const u8* cell = cells + 7 * i;
      u64 alpha = cell[6];
      own[0] += alpha;
      for (int c = 0; c < 6; c++) own[1 + c] += alpha * cell[c], own[7 + c] += alpha * cell[c] * cell[c];
    }
    for (int k = 0; own[0] && k < 13; k++) atomicAdd(&sums.of[k], own[k]);
  }
  PHASE {
    int c = threadIdx.x;
    if (c >= 3) continue;
    u64 total = sums.of[0], under = sums.of[1 + c], over = sums.of[4 + c];
    u64 frame_spread = total * sums.of[7 + c] - under * under, patch_spread = total * sums.of[10 + c] - over * over;
    float gain = 1, shift = 0;
    if (total) {
      if (patch_spread >= total * total) gain = clamped(sqrtf((float)frame_spread / (float)patch_spread), 1 / GAIN_MOST, GAIN_MOST);
      gain = 1 + transfer * (gain - 1);
      float mean = (float)over / (float)total, wanted = (float)under / (float)total;
      shift = (mean + transfer * (wanted - mean)) - gain * mean;
    }
    fit[c] = gain, fit[3 + c] = shift;
  }
}

extern "C" __global__ void seam_colours(const u8* cells, const Face* faces, float strength, float transfer, float* scratch, float* fit,
                                        u8* membrane) {
  __shared__ Sums sums;
  match(sums, cells, Cells(faces[0]).columns * Cells(faces[0]).rows, transfer, fit);
  (void)strength, (void)scratch, (void)membrane;  // arguments are those of all
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

// The step from patch to frame, by channel, as it is in the ring: what differs more from its median is hair or a hand;
// where the patch is not seen it is the median.
struct Steps {
  int counts[3][512];  // how often each step from -255 to 255 is seen in the ring
  float low[3], high[3];  // the two in the middle, whose mean is the median
  int ring;               // cells in it

  __device__ float of(const Seen& seen, int i, int c) const {
    float middle = (low[c] + high[c]) / 2;
    return seen.alpha(i) ? clamped((float)seen.step(i, c), middle - SPREAD, middle + SPREAD) : middle;
  }
};

// Phases of a block that fills `steps`, which lies in shared memory.
__device__ void learn(Steps& steps, const Seen& seen) {
  PHASE {
    EACH(i, 3 * 512) steps.counts[i / 512][i % 512] = 0;
    if (threadIdx.x == 0) steps.ring = 0;
  }
  PHASE {
    EACH(i, seen.count()) {
      if (!seen.in_ring(i)) continue;
      atomicAdd(&steps.ring, 1);
      for (int c = 0; c < 3; c++) atomicAdd(&steps.counts[c][seen.step(i, c) + 255], 1);
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

// The levels of a pyramid over `columns` x `rows` in `scratch`, each half as large as the one before, until one has fewer than `least` a side.
struct Pyramid {
  Level levels[LEVELS_MAX];
  int last;
  float* rest;  // of the scratch
  __device__ Pyramid(float* scratch, int columns, int rows, int least) : last(0) {
    for (levels[0] = {scratch, scratch + 3 * columns * rows, columns, rows}; is_halved(least); last++) {
      const Level& fine = levels[last];
      int across = (fine.columns + 1) / 2, down = (fine.rows + 1) / 2;
      float* next = fine.weight + fine.count();
      levels[last + 1] = {next, next + 3 * across * down, across, down};
    }
    rest = levels[last].weight + levels[last].count();
  }
  __device__ bool is_halved(int least) const {
    return least ? min(levels[last].columns, levels[last].rows) >= least : levels[last].count() > 1;
  }
};

// The step between frame and patch along the seam, continued smoothly over the inside. 128 everywhere where there is no ring.
extern "C" __global__ void seam_membrane(const u8* cells, const Face* faces, float strength, float transfer, float* scratch, float* fit,
                                         u8* membrane) {
  __shared__ Sums sums;
  __shared__ Steps steps;
  Seen seen(cells, faces[0], fit);
  Pyramid pyramid(scratch, seen.columns, seen.rows, 0);
  const Level *levels = pyramid.levels, &finest = levels[0];
  int last = pyramid.last;

  match(sums, cells, seen.count(), transfer, fit);
  learn(steps, seen);
  PHASE {
    EACH(i, finest.count()) {
      finest.weight[i] = seen.in_ring(i) ? 1.0f : 0.0f;
      for (int c = 0; c < 3; c++) finest.values[3 * i + c] = seen.in_ring(i) ? steps.of(seen, i, c) : 0.0f;
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
extern "C" __global__ void seam_poisson(const u8* cells, const Face* faces, float strength, float transfer, float* scratch, float* fit,
                                        u8* membrane) {
  __shared__ Sums sums;
  __shared__ Steps steps;
  Seen seen(cells, faces[0], fit);
  int columns = seen.columns, rows = seen.rows, count = seen.count();
  float *one = scratch, *other = scratch + 3 * count;
  match(sums, cells, count, transfer, fit);
  learn(steps, seen);
  PHASE {
    EACH(i, count) {
      int x = i % columns, y = i / columns;
      float sum[3] = {0, 0, 0};
      for (int k = 0; k < 4; k++) {
        int to_x = x + (k == 0) - (k == 1), to_y = y + (k == 2) - (k == 3);
        bool outside = to_x < 0 || to_y < 0 || to_x >= columns || to_y >= rows;  // nothing of the patch is seen there
        int next = outside ? i : to_y * columns + to_x;
        float rise = ((outside ? 0 : seen.alpha(next)) - seen.alpha(i)) / 255.0f;
        for (int c = 0; c < 3; c++) sum[c] += rise * (steps.of(seen, i, c) + steps.of(seen, next, c)) / 2;
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
      float smooth = sine_sum(other + 3 * (i / 3 % columns) + i % 3, rows, 3 * columns, i / 3 / columns);
      membrane[i] = steps.ring ? membrane_level(strength * (smooth + (1 - seen.alpha(i / 3) / 255.0f) * steps.of(seen, i / 3, i % 3))) : 128;
    }
  }
}

__device__ int mirrored(int place, int count) {  // cv2's BORDER_REFLECT_101
  while (place < 0 || place >= count) {
    if (count == 1) return 0;
    place = place < 0 ? -place : 2 * (count - 1) - place;
  }
  return place;
}

// Every second cell of `fine` under the binomial window of five: cv2.pyrDown. Beyond the border nothing is seen.
__device__ void reduce(const Level& fine, const Level& half, int place) {
  const float binomial[5] = {1, 4, 6, 4, 1};
  float sum[4] = {0, 0, 0, 0};
  for (int j = 0; j < 5; j++)
    for (int i = 0; i < 5; i++) {
      int x = 2 * (place % half.columns) + i - 2, y = 2 * (place / half.columns) + j - 2;
      int from = mirrored(y, fine.rows) * fine.columns + mirrored(x, fine.columns);
      for (int c = 0; c < 3; c++) sum[c] += binomial[j] * binomial[i] * fine.values[3 * from + c];
      if (x >= 0 && y >= 0 && x < fine.columns && y < fine.rows) sum[3] += binomial[j] * binomial[i] * fine.weight[from];
    }
  for (int c = 0; c < 3; c++) half.values[3 * place + c] = sum[c] / 256;
  half.weight[place] = sum[3] / 256;
}

// The way up: what lies between cells of the half, whose `values` are [rows, columns, 3], is their mean.
__device__ float expanded(const float* values, const Level& half, const Level& fine, int place, int c) {
  int x = place % fine.columns, y = place / fine.columns, left = x / 2, top = y / 2;
  int right = min(left + x % 2, half.columns - 1), bottom = min(top + y % 2, half.rows - 1);
  const float *upper = values + 3 * top * half.columns + c, *lower = values + 3 * bottom * half.columns + c;
  return (upper[3 * left] + upper[3 * right] + lower[3 * left] + lower[3 * right]) / 4;
}

__device__ float cover(const Level& level, int place, bool is_finest) {
  return is_finest ? level.weight[place] : clamped(2 * level.weight[place] - 1, 0.0f, 1.0f);
}

// In bands (Burt and Adelson 1983, "A multiresolution spline with application to image mosaics"): coarse differences fade over a wide seam, fine
// ones over a narrow one. The pyramids of patch and frame are linear, so that of their difference, patch - frame, is enough. Of a smoothed alpha
// the upper half is drawn out over its range: what is coarse fades inside of the face.
extern "C" __global__ void seam_bands(const u8* cells, const Face* faces, float strength, float transfer, float* scratch, float* fit,
                                      u8* membrane) {
  __shared__ Sums sums;
  __shared__ Steps steps;
  Seen seen(cells, faces[0], fit);
  Pyramid pyramid(scratch, seen.columns, seen.rows, LEAST_CELLS);
  const Level* levels = pyramid.levels;
  int last = pyramid.last;
  float *total = pyramid.rest, *above = total + 3 * seen.count();

  match(sums, cells, seen.count(), transfer, fit);
  learn(steps, seen);
  PHASE {
    EACH(i, seen.count()) {
      levels[0].weight[i] = seen.alpha(i) / 255.0f;
      for (int c = 0; c < 3; c++) levels[0].values[3 * i + c] = -steps.of(seen, i, c);
    }
  }
  for (int k = 0; k < last; k++) PHASE {
      EACH(i, levels[k + 1].count()) reduce(levels[k], levels[k + 1], i);
    }
  PHASE {
    EACH(i, 3 * levels[last].count()) total[i] = levels[last].values[i] * cover(levels[last], i / 3, last == 0);
  }
  for (int k = last - 1; k >= 0; k--) {
    float* coarse = total;
    total = above, above = coarse;
    PHASE {
      EACH(i, 3 * levels[k].count()) {
        const Level &fine = levels[k], &half = levels[k + 1];
        float band = fine.values[i] - expanded(half.values, half, fine, i / 3, i % 3);
        total[i] = expanded(coarse, half, fine, i / 3, i % 3) + band * cover(fine, i / 3, k == 0);
      }
    }
  }
  PHASE {
    EACH(i, 3 * seen.count()) {
      float alpha = levels[0].weight[i / 3];
      membrane[i] = steps.ring && alpha > 0 ? membrane_level(strength * (total[i] / alpha - levels[0].values[i])) : 128;
    }
  }
}
