// What the stand-ins record: gated records with their own Adam, slots, and denominators.
#include "train/stand_in.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/philox.h"
#include "tensor/ops.h"

namespace millrace::test {
namespace {

constexpr double kRate = 0.02, kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
constexpr uint32_t kStepWord = offsetof(StepBlock, step) / 4;
constexpr uint32_t kReservedWord = offsetof(StepBlock, reserved) / 4;
constexpr uint32_t kVersionUnit = 65536;  // the reserved word: version x unit + columns

Tensor zeros(const Shape& shape) {
  return Tensor::zeros(device_below(), shape, Dtype::F32, "stand-in");
}

std::vector<float> values_blocking(const Tensor& tensor) {
  const Ticket ticket = read_later(tensor);
  Device& device = tensor.device();
  device.wait_blocking(device.submit(), {WaitReason::Test, "test.stand_in"}).or_raise();
  const auto* first = reinterpret_cast<const float*>(ticket.bytes().data());
  return {first, first + tensor.numel()};
}

// 1 - beta^steps on the device.
Tensor bias_correction(const Tensor& steps, double beta) {
  return binary(BinaryOp::Sub, 1.0, exp(mul(steps, std::log(beta))));
}

}  // namespace

uint32_t record_size(uint32_t n_values) { return 3 * n_values + 2; }

void adam_record(const Attempt& attempt, const Tensor& record, const Tensor& gradient,
                 GateUse use) {
  const int64_t n = gradient.size(0);
  const auto part = [&](int64_t i) { return record.slice(0, i * n, (i + 1) * n); };
  const Tensor first = add(mul(part(1), kBeta1), mul(gradient, 1 - kBeta1));
  const Tensor second = add(mul(part(2), kBeta2), mul(square(gradient), 1 - kBeta2));
  const Tensor steps = add(record.slice(0, 3 * n, 3 * n + 1), 1.0);
  const Tensor update = div(div(first, bias_correction(steps, kBeta1)),
                            add(sqrt(div(second, bias_correction(steps, kBeta2))), kEpsilon));
  const Tensor value = sub(part(0), mul(update, kRate));
  const Tensor last = cast(attempt.step.slice(0, kStepWord, kStepWord + 1), Dtype::F32);
  const Tensor next = cat({value, first, second, steps, last}, 0);
  switch (use) {
    case GateUse::Obeyed:
      record.copy_(where(attempt.open, next, record));
      break;
    case GateUse::Ignored:
      record.copy_(next);
      break;
    case GateUse::Multiplied:  // garbage times nought is not always nought
      record.copy_(add(record, mul(sub(next, record), cast(attempt.open, Dtype::F32))));
      break;
  }
}

void ImageGain::apply(const Attempt& attempt, const Tensor& log_gain) {
  raw_ = attempt.taken(attempt.image, Dtype::F32);
  gain_ = exp(log_gain).reshape(Shape{3, 1});
  exposed_ = mul(raw_, gain_);
  attempt.give(attempt.image, exposed_);
}

Tensor ImageGain::backward(const Attempt& attempt) {
  const Tensor d_exposed = attempt.taken(attempt.d_image, Dtype::F32);
  attempt.give(attempt.d_image, mul(d_exposed, gain_));
  attempt.give(attempt.image, raw_);
  return reduce_sum(mul(d_exposed, exposed_), 1);
}

AppearanceStandIn::AppearanceStandIn(uint32_t n_views, Fault fault)
    : fault_(fault),
      home_(zeros(Shape{n_views, record_size(3)})),
      slots_{zeros(Shape{record_size(3)}), zeros(Shape{record_size(3)})},
      map_(2),
      gradient_(zeros(Shape{3})) {
  attach(*this);
}

uint32_t AppearanceStandIn::bind(uint32_t view) {
  ++n_bound_;
  uint32_t oldest = 0;
  for (uint32_t i = 0; i < map_.size(); ++i) {
    if (map_[i].view == view) {
      map_[i].last_use = n_bound_;
      return i;
    }
    if (map_[i].last_use < map_[oldest].last_use) oldest = i;
  }
  // Whether a gated kernel wrote to it is not known here, so every slot counts as dirty.
  const Tensor& slot = slots_[oldest];
  if (map_[oldest].view != kNoView) {
    home_.select(0, map_[oldest].view).copy_(slot);
    ++n_evictions_;
  }
  slot.copy_(home_.select(0, view));
  map_[oldest] = {view, n_bound_};
  return oldest;
}

void AppearanceStandIn::begin(const Attempt& attempt) {
  const uint32_t step = attempt.block.step;
  if (fault_ == Fault::MapRewound) {
    if (step < maps_.size()) map_ = maps_[step];
    maps_.resize(step);
    maps_.push_back(map_);
  }
  bound_ = bind(attempt.block.view);
  if (fault_ != Fault::GradientKept) gradient_.fill_(0);
}

void AppearanceStandIn::before_loss(const Attempt& attempt) {
  gain_.apply(attempt, slots_[bound_].slice(0, 0, 3));
}

void AppearanceStandIn::after_loss(const Attempt& attempt) {
  add_(gradient_, gain_.backward(attempt));
}

void AppearanceStandIn::commit(const Attempt& attempt) {
  adam_record(attempt, slots_[bound_], gradient_,
              fault_ == Fault::NoGate          ? GateUse::Ignored
              : fault_ == Fault::GateByProduct ? GateUse::Multiplied
                                               : GateUse::Obeyed);
  if (fault_ != Fault::GradientKept) return;
  gradient_.copy_(where(attempt.open, mul(gradient_, 0.0), gradient_));
}

std::vector<float> AppearanceStandIn::records_blocking() {
  for (uint32_t i = 0; i < map_.size(); ++i) {
    if (map_[i].view != kNoView) home_.select(0, map_[i].view).copy_(slots_[i]);
  }
  return values_blocking(home_);
}

ControllerStandIn::ControllerStandIn(uint32_t first_step, GateUse use)
    : first_step_(first_step), use_(use), record_(zeros(Shape{record_size(3)})) {
  attach(*this);
}

void ControllerStandIn::before_loss(const Attempt& attempt) {
  if (!runs(attempt)) return;
  features_ = reduce_mean(attempt.taken(attempt.image, Dtype::F32), 1);
  gain_.apply(attempt, mul(record_.slice(0, 0, 3), features_));
}

void ControllerStandIn::after_loss(const Attempt& attempt) {
  if (runs(attempt)) gradient_ = mul(gain_.backward(attempt), features_);
}

void ControllerStandIn::commit(const Attempt& attempt) {
  if (runs(attempt)) adam_record(attempt, record_, gradient_, use_);
}

std::vector<float> ControllerStandIn::record_blocking() { return values_blocking(record_); }

DenominatorStandIn::DenominatorStandIn(uint32_t width, uint32_t height, Source source)
    : width_(width), height_(height), source_(source), log_{{0, 0, width}} {
  const uint32_t n = width * height;
  std::vector<uint32_t> columns(n);
  for (uint32_t i = 0; i < n; ++i) columns[i] = i % width;
  host_masks_.resize(uint64_t{kVersions} * n);
  for (uint32_t i = 0; i < host_masks_.size(); ++i) {
    const bool counts = philox(1, i / n, RandomPurpose::TestCapacity, i)[0] % 4 != 0;
    host_masks_[i] = counts ? 1.0f : 0.0f;
  }
  masks_ = Tensor::from_host(device_below(), host_masks_, Shape{kVersions, n}, "stand-in");
  columns_ = Tensor::from_host(device_below(), columns, Shape{n}, "stand-in");
  ring_ = zeros(Shape{kRing});
  attach(*this);
}

Crop DenominatorStandIn::at(uint32_t step) const {
  if (source_ == Source::NewestEdit) return log_.back();
  Crop found = log_.front();
  for (const Crop& edit : log_) {
    if (edit.step <= step) found = edit;
  }
  return found;
}

void DenominatorStandIn::complete(StepBlock& block) {
  const Crop crop = at(block.step);
  block.reserved = crop.version * kVersionUnit + crop.columns;
}

Tensor DenominatorStandIn::denominator(const Attempt& attempt, const Tensor& weights) {
  if (source_ == Source::Cached) {
    if (!cached_.defined()) cached_ = max(reduce_sum(weights), 1.0);
    return cached_;
  }
  if (source_ != Source::Host) return max(reduce_sum(weights), 1.0);
  const Crop crop = at(attempt.block.step);
  float n = 0;
  for (uint32_t i = 0; i < width_ * height_; ++i) {
    if (i % width_ < crop.columns) n += host_masks_[crop.version * width_ * height_ + i];
  }
  return Tensor::full(attempt.device, Shape{1}, Dtype::F32, std::max(n, 1.0f), "stand-in");
}

void DenominatorStandIn::after_loss(const Attempt& attempt) {
  const Tensor word = attempt.step.slice(0, kReservedWord, kReservedWord + 1);
  const Tensor version = cast(mul(cast(word, Dtype::F32), 1.0 / kVersionUnit), Dtype::U32);
  const Tensor crop = sub(word, mul(version, double{kVersionUnit}));
  const Tensor weights = mul(gather(masks_, version), cast(lt(columns_, crop), Dtype::F32));
  const Tensor divisor = denominator(attempt, weights);

  const Tensor target = cast(attempt.taken(attempt.target, Dtype::U8), Dtype::F32);
  const Tensor error = abs(sub(attempt.taken(attempt.image, Dtype::F32), mul(target, 1.0 / 255)));
  const Tensor loss = div(reduce_sum(mul(error, weights)), divisor);
  const uint32_t at = attempt.block.step % kRing;
  const Tensor entry = ring_.slice(0, at, at + 1);
  entry.copy_(where(attempt.open, loss, entry));

  const Tensor d_image = attempt.taken(attempt.d_image, Dtype::F32);
  const Tensor scale = div(mul(weights, double(attempt.n_pixels())), divisor);
  attempt.give(attempt.d_image, mul(d_image, scale));
}

std::vector<float> DenominatorStandIn::losses_blocking() { return values_blocking(ring_); }

}  // namespace millrace::test
