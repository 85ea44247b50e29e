// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/axisticks.h"

#include "ui/style/format.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace klineage::ui {

namespace {

constexpr int mostTicks = 400;

/// Steps of 1, 2, 5 times a power of ten, about `wanted` of them.
double niceStep(double span, double wanted)
{
    const double rough = span / std::max(wanted, 1.0);
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * power >= rough)
            return factor * power;
    }
    return 10 * power;
}

QString valueText(const PictureAxis &axis, double value, double step)
{
    switch (axis.kind) {
    case PictureAxis::Kind::Latency:
        return formatLatency(std::pow(10.0, value));
    case PictureAxis::Kind::Ratio:
        return formatSpeedup(std::pow(10.0, value));
    default:
        return formatFixed(value, std::clamp(static_cast<int>(-std::floor(std::log10(step))), 0, 6))
               + axis.unit;
    }
}

std::vector<AxisTick> linearTicks(const PictureAxis &axis, double low, double high, double wanted)
{
    std::vector<AxisTick> ticks;
    const double step = niceStep(high - low, wanted);
    for (double at = std::ceil(low / step) * step;
         at <= high + step * 1e-9 && static_cast<int>(ticks.size()) < mostTicks; at += step)
        ticks.push_back({at, valueText(axis, std::abs(at) < step * 1e-9 ? 0 : at, step), {}});
    return ticks;
}

std::vector<AxisTick> logTicks(const PictureAxis &axis, double low, double high, double wanted)
{
    const double decades = high - low;
    // Within a part of a decade powers of ten say nothing; the values themselves are then about linear.
    if (decades < 0.5) {
        PictureAxis linear = axis;
        linear.kind = PictureAxis::Kind::Linear;
        std::vector<AxisTick> ticks =
            linearTicks(linear, std::pow(10.0, low), std::pow(10.0, high), std::min(wanted, 6.0));
        for (AxisTick &tick : ticks) {
            tick.at = std::log10(tick.at);
            tick.text = valueText(axis, tick.at, 1);
        }
        return ticks;
    }
    const bool hasParts = decades * 3 <= wanted;
    const double every = std::max(1.0, std::ceil(decades / std::max(wanted, 1.0)));
    std::vector<AxisTick> ticks;
    for (double decade = std::floor(low); decade <= high && static_cast<int>(ticks.size()) < mostTicks;
         ++decade) {
        if (std::fmod(std::abs(decade), every) > 0.5)
            continue;
        for (const double factor : {1.0, 2.0, 5.0}) {
            if (factor > 1 && !hasParts)
                break;
            const double at = decade + std::log10(factor);
            if (at >= low && at <= high)
                ticks.push_back({at, valueText(axis, at, 1), {}});
        }
    }
    return ticks;
}

std::vector<AxisTick> nameTicks(const PictureAxis &axis, double low, double high)
{
    std::vector<AxisTick> ticks;
    for (const PictureAxis::Name &name : axis.names) {
        if (name.at >= low && name.at <= high)
            ticks.push_back({name.at, name.text, name.below});
    }
    return ticks;
}

} // namespace

std::vector<AxisTick> axisTicks(const PictureAxis &axis, double low, double high, double pixels,
                                double textPixels)
{
    if (!(high > low) || pixels < 1)
        return {};
    const double wanted = pixels / std::max(textPixels * 1.8, 1.0);
    switch (axis.kind) {
    case PictureAxis::Kind::None:
        return {};
    case PictureAxis::Kind::Names:
        return nameTicks(axis, low, high);
    case PictureAxis::Kind::Linear:
        return linearTicks(axis, low, high, wanted);
    case PictureAxis::Kind::Latency:
    case PictureAxis::Kind::Ratio:
        return logTicks(axis, low, high, wanted);
    }
    return {};
}

} // namespace klineage::ui
