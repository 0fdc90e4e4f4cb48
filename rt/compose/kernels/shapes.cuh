// Capsules and polygons as masks whose edges are ramps of the distance: engines/mask/shapes.py in another language.
#pragma once
#include "sources.cuh"

// A segment: ax, ay, bx, by, radius, and what it is.
#define SEGMENT 6
#define CAPSULE 0  // all that is nearer than the radius
#define EDGE 1     // of a polygon that goes on with the next segment
#define CLOSING 2  // its last edge; the polygon is widened by the radius

__device__ inline float to_segment_squared(const float* s, float x, float y) {
  float dx = s[2] - s[0], dy = s[3] - s[1], px = x - s[0], py = y - s[1];
  float along = clamped((px * dx + py * dy) / fmaxf(dx * dx + dy * dy, 1e-12f), 0.0f, 1.0f);
  px -= along * dx, py -= along * dy;
  return px * px + py * py;
}

// Signed distance to the union, pixels; negative inside.
__device__ inline float shape_distance(const float* segments, int count, float x, float y) {
  float nearest = 1e9f, edge = 1e18f;
  bool inside = false;
  for (int k = 0; k < count; k++) {
    const float* s = segments + k * SEGMENT;
    float squared = to_segment_squared(s, x, y);
    if (s[5] == CAPSULE) {
      nearest = fminf(nearest, sqrtf(squared) - s[4]);
      continue;
    }
    edge = fminf(edge, squared);
    if ((s[1] <= y) != (s[3] <= y) && x < s[0] + (y - s[1]) * (s[2] - s[0]) / (s[3] - s[1])) inside = !inside;
    if (s[5] == CLOSING) {
      nearest = fminf(nearest, (inside ? -sqrtf(edge) : sqrtf(edge)) - s[4]);
      edge = 1e18f, inside = false;
    }
  }
  return nearest;
}

// ramp: offset, slope a pixel, least, most; levels.
__device__ inline int shape_level(const float* segments, int count, const float* ramp, int x, int y) {
  return level(clamped(ramp[0] + ramp[1] * shape_distance(segments, count, (float)x, (float)y), ramp[2], ramp[3]));
}

// What masks leave to be seen of a pixel of the box. Any of the pointers may be null.
struct Limit {
  const u8* sent;                  // what the processor left, [height, width]
  const float *segments, *shapes;  // `face.shapes` shapes, [shapes, 6]: first segment, count of segments, ramp; segments in pixels of the frame
  const u8* made;                  // masks that networks made, [all, side, side]; their borders go on outside
  const float* table;              // `face.masks` of them, [masks, 8]: which one, side, pixel of the box -> pixel of the mask
  __device__ int of(const Face& face, int x, int y) const {
    int least = sent ? sent[(size_t)y * face.width + x] : 255;
    for (int k = 0; shapes && k < face.shapes; k++) {
      const float* shape = shapes + 6 * k;
      least = min(least, shape_level(segments + SEGMENT * (int)shape[0], (int)shape[1], shape + 2, face.left + x, face.top + y));
    }
    for (int k = 0; table && k < face.masks; k++) {
      const float* mask = table + 8 * k;
      int side = (int)mask[1];
      least = min(least, (int)level(bilinear_u8(made + (size_t)mask[0] * side * side, side, side, moved(mask + 2, x, y))));
    }
    return least;
  }
};
