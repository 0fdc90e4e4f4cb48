// The colours of a patch brought to those of the frame below it: mean and deviation of each channel (Reinhard et al. 2001, "Color transfer
// between images"), weighted by alpha. What comes out is a Fit, which the paste applies.
#include "sources.cuh"

#define SUMS 13  // of alpha; then for B, G, R of the frame and B, G, R of the patch alpha * value and alpha * value^2
#define THREADS 256
#define MIDDLE 128.0f       // subtracted before squaring, so that float32 is enough
#define LEAST_DEVIATION 1.0f  // levels: what is flat has no contrast to be stretched
#define GAIN_MOST 2.0f

// Any number of blocks of 256 threads, each for its share of the rows. `sums`: float [blocks, 13]. `limit`: u8 [height, width], or null.
extern "C" __global__ void match_sums(const u8* frame, int width, int height, int pitch, const Face* faces, const u8* pixels,
                                      const u8* alpha, const u8* limit, float* sums) {
  __shared__ float parts[THREADS][SUMS];
  const Face& face = faces[0];
  Picture picture{(u8*)frame, width, height, pitch};
  PHASE {
    float sum[SUMS] = {0};
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < face.width * face.height; i += gridDim.x * THREADS) {
      float weight = limit ? min(alpha[i], limit[i]) : alpha[i];
      const u8* below = picture.at(face.left + i % face.width, face.top + i / face.width);
      sum[0] += weight;
      for (int c = 0; c < 3; c++) {
        float under = below[c] - MIDDLE, over = pixels[3 * (size_t)i + c] - MIDDLE;
        sum[1 + c] += weight * under, sum[4 + c] += weight * under * under;
        sum[7 + c] += weight * over, sum[10 + c] += weight * over * over;
      }
    }
    for (int k = 0; k < SUMS; k++) parts[threadIdx.x][k] = sum[k];
  }
  for (int half = THREADS / 2; half > 0; half /= 2) PHASE {
      if ((int)threadIdx.x < half)
        for (int k = 0; k < SUMS; k++) parts[threadIdx.x][k] += parts[threadIdx.x + half][k];
    }
  PHASE {
    if (threadIdx.x < SUMS) sums[blockIdx.x * SUMS + threadIdx.x] = parts[0][threadIdx.x];
  }
}

// Three threads. `fit`: gain and bias of B, G, R; 1 and 0 where nothing is seen. `strength`: 0 leaves the patch as it is, 1 matches it wholly.
extern "C" __global__ void match_fit(const float* sums, int blocks, float strength, float* fit) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= 3) return;
  float total[5] = {0, 0, 0, 0, 0};
  for (int k = 0; k < blocks; k++) {
    const float* own = sums + k * SUMS;
    total[0] += own[0];
    for (int j = 0; j < 4; j++) total[1 + j] += own[1 + 3 * j + c];
  }
  float weight = fmaxf(total[0], 1e-6f), under = total[1] / weight, over = total[3] / weight;
  float frame_deviation = sqrtf(fmaxf(0.0f, total[2] / weight - under * under));
  float patch_deviation = sqrtf(fmaxf(0.0f, total[4] / weight - over * over));
  float gain = patch_deviation < LEAST_DEVIATION ? 1.0f : clamped(frame_deviation / patch_deviation, 1 / GAIN_MOST, GAIN_MOST);
  gain = total[0] > 0 ? 1 + strength * (gain - 1) : 1.0f;
  // The mean goes the same share of its way; around MIDDLE, where it was summed.
  float mean = total[0] > 0 ? over + strength * (under - over) : 0.0f;
  fit[c] = gain, fit[3 + c] = (mean + MIDDLE) - gain * ((total[0] > 0 ? over : 0.0f) + MIDDLE);
}
