// What is laid over a frame: a pixel of a network's picture or of a patch, and how it is blended in.
#pragma once
#include "pixels.cuh"

// B, G, R and alpha of one pixel of a source; levels.
struct Colour {
  int c[3], alpha;
};

// Gain and bias of B, G, R by which a source takes the frame's colours: float [6]. May be null.
struct Fit {
  const float* values;
  __device__ int of(int value, int channel) const { return values ? level(value * values[channel] + values[3 + channel]) : value; }
};

// The pictures of a network for one face: float [boost * boost, 3, side, side] in R, G, B. Picture (i, j) has every boost-th pixel of the
// crop from row i and column j on.
struct Made {
  const float* planes;
  int side, boost;
  __device__ size_t place(int colour, int x, int y) const {
    size_t picture = (size_t)(y % boost) * boost + x % boost;
    return ((picture * 3 + colour) * side + y / boost) * side + x / boost;
  }
  __device__ int level_at(const Face& face, int channel, int x, int y) const {  // channel: 0 B, 1 G, 2 R
    int colour = 2 - channel;
    return level(planes[place(colour, x, y)] * face.made_scale[colour] + face.made_shift[colour]);
  }
};

// The same sampled where it is wanted.
struct CropSource {
  Made made;
  const u8* soft;      // alpha of the crop [side * boost, side * boost]
  const float* shown;  // [boost * boost, side, side] in [0, 1], what the network says is face, or null

  __device__ int crop_alpha(int x, int y) const {
    int alpha = soft[(size_t)y * made.side * made.boost + x];
    if (!shown) return alpha;
    size_t picture = (size_t)(y % made.boost) * made.boost + x % made.boost;
    return min(alpha, (int)level(255 * shown[(picture * made.side + y / made.boost) * made.side + x / made.boost]));
  }
  // A pixel of the crop averaged by the face's factor, weighted into `sum`. Rounded as the bytes of a picture would be; 0 outside.
  __device__ void add(const Face& face, int x, int y, float weight, float* sum) const {
    int factor = face.paste_factor, total[4] = {0, 0, 0, 0}, whole = made.side * made.boost;
    if (x < 0 || y < 0 || x >= whole / factor || y >= whole / factor) return;
    for (int j = 0; j < factor; j++)
      for (int i = 0; i < factor; i++) {
        for (int c = 0; c < 3; c++) total[c] += made.level_at(face, c, x * factor + i, y * factor + j);
        total[3] += crop_alpha(x * factor + i, y * factor + j);
      }
    for (int c = 0; c < 4; c++) sum[c] += weight * level((float)total[c] / (factor * factor));
  }
  __device__ Colour at(const Face& face, int x, int y) const {  // pixel of the box
    Taps taps(moved(face.to_crop, x, y));
    float sum[4] = {0, 0, 0, 0};
    for (int k = 0; k < 4; k++) add(face, taps.column(k), taps.row(k), taps.w[k], sum);
    return {{level(sum[0]), level(sum[1]), level(sum[2])}, level(sum[3])};
  }
};

// Lays a colour over a pixel as the host's compositor does: (a (255 * 256 - w) + b w) / (255 * 256), rounded; w = alpha * opacity.
__device__ inline void blend(u8* pixel, const Colour& over, int opacity) {
  const unsigned whole = 255 * 256;
  unsigned weight = (unsigned)over.alpha * opacity;
  if (!weight) return;
  for (int c = 0; c < 3; c++) pixel[c] = (u8)((pixel[c] * (whole - weight) + over.c[c] * weight + whole / 2) / whole);
}

// The cells on which the seam of a face's box is matched: `side` pixels each way, at most 48 of them each way; rt/compose/host.py's seam_cells.
struct Cells {
  int side, columns, rows;
  __device__ Cells(const Face& face) {
    side = max(1, (max(face.width, face.height) + 47) / 48);
    columns = max(1, face.width / side), rows = max(1, face.height / side);
  }
};
