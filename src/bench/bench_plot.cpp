// The bench as a picture (SVG).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/bench_report.h"

namespace millrace {
namespace {

constexpr double kWidth = 1080, kHeight = 700;
constexpr std::array<const char*, 2> kColors = {"#2563eb", "#c2410c"};  // A, B
constexpr const char* kInk = "#1f2937";
constexpr const char* kFaint = "#d1d5db";
constexpr size_t kMostLetters = 110;  // of a side's flags in the head

/// `text` with XML's own characters and control characters replaced.
std::string xml_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      // Bytes that are not ASCII may not be UTF-8, which would spoil the whole picture.
      out += c >= 0x20 && c < 0x7f ? c : '?';
    }
  }
  return out;
}

std::string label(double x, double y, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, more, xml_text(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* stroke,
                 const char* more = "") {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" {}/>\n", x1, y1,
      x2, y2, stroke, more);
}

/// A mark of `side`: a disc for A, a square for B, so that colour is not all that tells them apart.
std::string mark(double x, double y, size_t side) {
  if (side == 0) {
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", x, y,
                       kColors[0]);
  }
  return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"7.5\" height=\"7.5\" fill=\"{}\"/>\n",
                     x - 3.75, y - 3.75, kColors[1]);
}

/// A range of values that grows with what is shown.
struct Range {
  double low = INFINITY, high = -INFINITY;
  void add(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// With a margin, never empty.
  Range padded() const {
    if (!(low <= high)) return {0, 1};
    const double margin = std::max((high - low) * 0.08, std::max(std::abs(high), 1e-6) * 0.005);
    return {low - margin, high + margin};
  }
};

/// Round numbers in [low, high], four to nine of them.
std::vector<double> ticks_of(const Range& range) {
  const double span = range.high - range.low;
  const double power = std::pow(10, std::floor(std::log10(span / 4)));
  double step = power;
  for (const double factor : {2.0, 5.0}) {
    if (span / (power * factor) >= 4) step = power * factor;
  }
  std::vector<double> ticks;
  for (double k = std::ceil(range.low / step); k * step <= range.high; ++k) {
    ticks.push_back(k * step);
  }
  return ticks;
}

std::string tick_text(double value, double step) {
  const int digits = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return fmt::format("{:.{}f}", std::abs(value) < step / 1e6 ? 0.0 : value, digits);
}

/// A rectangle of the picture with its axes.
struct Panel {
  double left, top, width, height;
  Range x, y;

  double at_x(double value) const { return left + (value - x.low) / (x.high - x.low) * width; }
  double at_y(double value) const {
    return top + height - (value - y.low) / (y.high - y.low) * height;
  }
  /// Frame, horizontal grid, title above, and the ticks of both axes.
  std::string axes(const std::string& title, const std::string& x_title,
                   const std::vector<double>& x_ticks) const;
};

std::string Panel::axes(const std::string& title, const std::string& x_title,
                        const std::vector<double>& x_ticks) const {
  std::string svg = label(left, top - 12, title, "font-weight=\"600\"");
  const std::vector<double> y_ticks = ticks_of(y);
  const double y_step = y_ticks.size() > 1 ? y_ticks[1] - y_ticks[0] : 1;
  for (const double value : y_ticks) {
    svg += line(left, at_y(value), left + width, at_y(value), kFaint, "stroke-width=\"0.7\"");
    svg += label(left - 7, at_y(value) + 4, tick_text(value, y_step), "text-anchor=\"end\"");
  }
  for (const double value : x_ticks) {
    svg += line(at_x(value), top + height, at_x(value), top + height + 4, kInk);
    svg += label(at_x(value), top + height + 18, tick_text(value, 1), "text-anchor=\"middle\"");
  }
  svg += line(left, top + height, left + width, top + height, kInk);
  return svg + label(left + width / 2, top + height + 36, x_title, "text-anchor=\"middle\"");
}

std::vector<double> whole_ticks(const Range& range) {
  std::vector<double> ticks = ticks_of(range);
  std::erase_if(ticks, [](double value) { return value != std::round(value); });
  return ticks;
}

std::string window_panel(const BenchSummary& summary, Panel panel) {
  Range x, y;
  for (const SideSummary& side : summary.sides) {
    for (const WindowSummary& window : side.windows) {
      x.add(window.step_begin);
      x.add(window.step_end);
      y.add(window.ms_per_step.min);
      y.add(window.ms_per_step.max);
    }
  }
  panel.x = x.low < x.high ? x : Range{0, 1};
  panel.y = y.padded();
  std::string svg =
      panel.axes("ms per step by window: median, band min to max", "step", whole_ticks(panel.x));
  for (size_t i = 0; i < summary.sides.size(); ++i) {
    std::string upper, lower, middle, marks;
    for (const WindowSummary& window : summary.sides[i].windows) {
      if (window.ms_per_step.n == 0) continue;
      const double at = panel.at_x((window.step_begin + window.step_end) / 2.0);
      const Spread& ms = window.ms_per_step;
      upper += fmt::format("{:.1f},{:.1f} ", at, panel.at_y(ms.max));
      lower.insert(0, fmt::format("{:.1f},{:.1f} ", at, panel.at_y(ms.min)));
      middle += fmt::format("{:.1f},{:.1f} ", at, panel.at_y(ms.median));
      marks += mark(at, panel.at_y(ms.median), i);
    }
    if (middle.empty()) continue;
    svg += fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.15\"/>\n", upper,
                       lower, kColors[i]);
    svg += fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n{}", middle,
        kColors[i], marks);
  }
  return svg;
}

std::string ratio_panel(const BenchSummary& summary, Panel panel) {
  const auto n = static_cast<double>(summary.pair_ratios.size());
  Range y;
  y.add(1);
  for (const double ratio : summary.pair_ratios) y.add(ratio);
  panel.x = {0.5, std::max(n, 1.0) + 0.5};
  panel.y = y.padded();
  const std::string median_text =
      summary.ratio.n > 0 ? fmt::format(": median {:.4f}", summary.ratio.median) : std::string();
  std::string svg = panel.axes("B/A of each pair" + median_text, "pair", whole_ticks(panel.x));
  const double right = panel.left + panel.width;
  svg += line(panel.left, panel.at_y(1), right, panel.at_y(1), kInk, "stroke-dasharray=\"2 3\"");
  if (summary.pair_ratios.empty()) return svg;
  const double median_y = panel.at_y(summary.ratio.median);
  svg += line(panel.left, median_y, right, median_y, kColors[1], "stroke-width=\"1.5\"");
  for (size_t i = 0; i < summary.pair_ratios.size(); ++i) {
    svg += mark(panel.at_x(static_cast<double>(i) + 1), panel.at_y(summary.pair_ratios[i]), 1);
  }
  return svg;
}

std::string order_panel(const BenchReport& report, const BenchSummary& summary, Panel panel) {
  Range y;
  for (const RunRecord& run : report.runs) y.add(run.ms_per_step);
  panel.x = {0.5, static_cast<double>(std::max<size_t>(report.runs.size(), 1)) + 0.5};
  panel.y = y.padded();
  const double drift = summary.drift_percent_per_run;
  std::string svg = panel.axes(
      std::isfinite(drift)
          ? fmt::format("ms per step of each run: drift {:+.2f} % from run to run", drift)
          : std::string("ms per step of each run"),
      "run, in order", whole_ticks(panel.x));
  for (size_t i = 0; i < report.runs.size(); ++i) {
    const RunRecord& run = report.runs[i];
    if (!std::isfinite(run.ms_per_step)) continue;
    svg += mark(panel.at_x(static_cast<double>(i) + 1), panel.at_y(run.ms_per_step), run.side);
  }
  return svg;
}

std::string head(const BenchReport& report, const BenchSummary& summary) {
  std::string svg =
      label(24, 30, fmt::format("millrace bench: {}  ({})", report.dataset, report.date),
            "font-size=\"16\" font-weight=\"600\"");
  for (size_t i = 0; i < report.sides.size(); ++i) {
    const double y = 54 + 20 * static_cast<double>(i);
    std::string flags =
        report.sides[i].flags.empty() ? "(the common flags alone)" : report.sides[i].flags;
    if (flags.size() > kMostLetters) flags = flags.substr(0, kMostLetters) + " ...";
    const Spread& ms = summary.sides[i].metrics[0];
    svg += mark(30, y - 4, i);
    const std::string time =
        ms.n == 0 ? "no runs"
                  : fmt::format("{:.3f} ms per step, MAD {:.3f}, {} runs", ms.median, ms.mad, ms.n);
    svg += label(44, y, fmt::format("{}: {}; {}", i == 0 ? "A" : "B", time, flags));
  }
  return svg;
}

}  // namespace

std::string bench_svg(const BenchReport& report) {
  const BenchSummary summary = summarise(report);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"{2}\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight, kInk);
  svg += head(report, summary);
  const bool compares = report.sides.size() > 1;
  svg += window_panel(summary, {76, 130, compares ? 600.0 : 964.0, 240, {}, {}});
  if (compares) svg += ratio_panel(summary, {756, 130, 284, 240, {}, {}});
  svg += order_panel(report, summary, {76, 470, 964, 160, {}, {}});
  return svg + "</svg>\n";
}

}  // namespace millrace
