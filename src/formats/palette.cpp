// One- and many-dimensional k-means, small enough for a save.
// Source: Lloyd, Least squares quantization in PCM, IEEE Trans. Inf. Theory 28(2), 1982; cells by
// the variance-based splits of Wan, Wong and Prusinkiewicz, ACM TOMS 14(2), 1988.
#include "formats/palette.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

namespace millrace {
namespace {

constexpr int kCodebookRounds = 40;

// A node of the tree of cells: a split, or a leaf with the rows order[begin, end).
struct Node {
  size_t begin = 0, end = 0;
  size_t axis = 0;
  float at = 0;  // rows below go left
  double error = 0;
  int32_t left = -1, right = -1;
  uint32_t label = 0;  // of a leaf
};

class CellTree {
 public:
  CellTree(std::span<const float> rows, size_t n_axes)
      : rows_(rows), n_axes_(n_axes), order_(rows.size() / n_axes) {
    std::iota(order_.begin(), order_.end(), 0u);
    nodes_.push_back(measured(0, order_.size()));
  }

  void split(size_t n_most) {
    // The largest error first; of equal ones the earlier node.
    using Entry = std::pair<double, int64_t>;
    std::priority_queue<Entry> queue;
    queue.emplace(nodes_[0].error, 0);
    size_t n_leaves = 1;
    while (n_leaves < n_most && !queue.empty()) {
      const auto [error, key] = queue.top();
      queue.pop();
      if (error <= 0) break;
      const auto index = static_cast<size_t>(-key);
      const Node node = nodes_[index];
      const auto begin = order_.begin();
      const auto middle = std::stable_partition(
          begin + static_cast<ptrdiff_t>(node.begin), begin + static_cast<ptrdiff_t>(node.end),
          [&](uint32_t row) { return value(row, node.axis) < node.at; });
      const auto cut = static_cast<size_t>(middle - begin);
      if (cut == node.begin || cut == node.end) continue;  // its values cannot be told apart
      for (const bool is_left : {true, false}) {
        const auto child = static_cast<int32_t>(nodes_.size());
        nodes_.push_back(is_left ? measured(node.begin, cut) : measured(cut, node.end));
        (is_left ? nodes_[index].left : nodes_[index].right) = child;
        queue.emplace(nodes_.back().error, -static_cast<int64_t>(child));
      }
      ++n_leaves;
    }
  }

  Palette palette() {
    Palette out;
    out.labels.resize(order_.size());
    for (Node& node : nodes_) {
      if (node.left >= 0) continue;
      node.label = static_cast<uint32_t>(out.centroids.size() / n_axes_);
      for (size_t i = node.begin; i < node.end; ++i) out.labels[order_[i]] = node.label;
      out.centroids.resize(out.centroids.size() + n_axes_);
    }
    return out;
  }

  /// The leaves that `row` may belong to: its own, and those across up to `n_more` splits that it
  /// lies nearest to.
  void candidates(uint32_t row, size_t n_more, std::vector<uint32_t>& out) const {
    out.clear();
    using Entry = std::pair<float, int32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    queue.emplace(0.0f, 0);
    while (!queue.empty() && out.size() <= n_more) {
      auto [distance, index] = queue.top();
      queue.pop();
      const Node* node = &nodes_[static_cast<size_t>(index)];
      while (node->left >= 0) {
        const float beyond = value(row, node->axis) - node->at;
        const bool is_left = beyond < 0;
        queue.emplace(distance + beyond * beyond, is_left ? node->right : node->left);
        node = &nodes_[static_cast<size_t>(is_left ? node->left : node->right)];
      }
      out.push_back(node->label);
    }
  }

 private:
  float value(uint32_t row, size_t axis) const { return rows_[row * n_axes_ + axis]; }

  Node measured(size_t begin, size_t end) const {
    Node node;
    node.begin = begin;
    node.end = end;
    std::vector<double> sum(n_axes_), sum2(n_axes_);
    for (size_t i = begin; i < end; ++i) {
      for (size_t axis = 0; axis < n_axes_; ++axis) {
        const double x = value(order_[i], axis);
        sum[axis] += x;
        sum2[axis] += x * x;
      }
    }
    double widest = -1;
    for (size_t axis = 0; axis < n_axes_; ++axis) {
      const double mean = sum[axis] / static_cast<double>(std::max<size_t>(1, end - begin));
      const double error = std::max(0.0, sum2[axis] - sum[axis] * mean);
      node.error += error;
      if (error <= widest) continue;
      widest = error;
      node.axis = axis;
      node.at = static_cast<float>(mean);
    }
    if (end - begin < 2) node.error = 0;
    return node;
  }

  std::span<const float> rows_;
  size_t n_axes_;
  std::vector<uint32_t> order_;
  std::vector<Node> nodes_;
};

void move_centroids(std::span<const float> rows, size_t n_axes, Palette& palette) {
  std::vector<double> sums(palette.centroids.size());
  std::vector<uint32_t> counts(palette.centroids.size() / n_axes);
  for (size_t i = 0; i < palette.labels.size(); ++i) {
    const size_t label = palette.labels[i];
    ++counts[label];
    for (size_t axis = 0; axis < n_axes; ++axis) {
      sums[label * n_axes + axis] += rows[i * n_axes + axis];
    }
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const uint32_t n = counts[i / n_axes];
    if (n > 0) palette.centroids[i] = static_cast<float>(sums[i] / n);
  }
}

}  // namespace

Codebook make_codebook(std::span<const float> values) {
  Codebook book = {};
  if (values.empty()) return book;
  std::vector<float> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> sums(sorted.size() + 1);
  for (size_t i = 0; i < sorted.size(); ++i) sums[i + 1] = sums[i] + sorted[i];
  // Entries as dense as the cube root of the values, which is the best for many of them (Panter and
  // Dite, Proc. IRE 39, 1951), so that a long tail has its share; k-means then moves them.
  constexpr size_t kBins = 4096;
  const double low = sorted.front(), width = (static_cast<double>(sorted.back()) - low) / kBins;
  std::vector<double> share(kBins + 1);
  for (size_t bin = 0, i = 0; bin < kBins; ++bin) {
    const size_t first = i;
    const double border = low + width * static_cast<double>(bin + 1);
    while (i < sorted.size() && (sorted[i] <= border || bin + 1 == kBins)) ++i;
    share[bin + 1] = share[bin] + std::cbrt(static_cast<double>(i - first));
  }
  for (size_t k = 0, bin = 0; k < book.size(); ++k) {
    const double at = (static_cast<double>(k) + 0.5) / static_cast<double>(book.size());
    while (bin + 1 < kBins && share[bin + 1] < at * share[kBins]) ++bin;
    const double step = share[bin + 1] - share[bin];
    const double part = step > 0 ? (at * share[kBins] - share[bin]) / step : 0.5;
    book[k] = static_cast<float>(low + width * (static_cast<double>(bin) + part));
  }
  for (int round = 0; round < kCodebookRounds; ++round) {
    size_t begin = 0;
    for (size_t k = 0; k < book.size(); ++k) {
      size_t end = sorted.size();
      if (k + 1 < book.size()) {
        const float border = 0.5f * (book[k] + book[k + 1]);
        end = static_cast<size_t>(
            std::lower_bound(sorted.begin() + static_cast<ptrdiff_t>(begin), sorted.end(), border) -
            sorted.begin());
      }
      if (end > begin) {
        book[k] = static_cast<float>((sums[end] - sums[begin]) / static_cast<double>(end - begin));
      }
      begin = end;
    }
    std::sort(book.begin(), book.end());
  }
  return book;
}

uint8_t nearest_entry(const Codebook& codebook, float value) {
  const auto* above = std::lower_bound(codebook.begin(), codebook.end(), value);
  if (above == codebook.begin()) return 0;
  if (above == codebook.end()) return 255;
  const bool below = value - *(above - 1) <= *above - value;
  return static_cast<uint8_t>(above - codebook.begin() - (below ? 1 : 0));
}

Palette make_palette(std::span<const float> rows, size_t n_axes, size_t n_most, int n_rounds) {
  CellTree tree(rows, n_axes);
  tree.split(n_most);
  Palette palette = tree.palette();
  move_centroids(rows, n_axes, palette);
  constexpr size_t kMoreCells = 12;
  std::vector<uint32_t> candidates;
  for (int round = 0; round < n_rounds; ++round) {
    for (uint32_t row = 0; row < palette.labels.size(); ++row) {
      tree.candidates(row, kMoreCells, candidates);
      candidates.push_back(palette.labels[row]);
      float best = INFINITY;
      uint32_t label = palette.labels[row];
      for (const uint32_t candidate : candidates) {
        float d2 = 0;
        for (size_t axis = 0; axis < n_axes; ++axis) {
          const float d = rows[row * n_axes + axis] - palette.centroids[candidate * n_axes + axis];
          d2 += d * d;
        }
        if (d2 < best) {
          best = d2;
          label = candidate;
        }
      }
      palette.labels[row] = label;
    }
    move_centroids(rows, n_axes, palette);
  }
  return palette;
}

}  // namespace millrace
