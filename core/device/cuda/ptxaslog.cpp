// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/ptxaslog.h"

#include <charconv>
#include <optional>
#include <string>

namespace klineage::gate::cuda {

namespace {

/// The number that stands right before `phrase` in the line.
std::optional<double> numberBefore(std::string_view line, std::string_view phrase)
{
    const std::size_t at = line.find(phrase);
    if (at == std::string_view::npos)
        return {};
    std::size_t begin = at;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
        --begin;
    long long value = 0;
    if (std::from_chars(line.data() + begin, line.data() + at, value).ec != std::errc{})
        return {};
    return static_cast<double>(value);
}

std::optional<std::string_view> quotedAfter(std::string_view line, std::string_view phrase)
{
    const std::size_t at = line.find(phrase);
    if (at == std::string_view::npos)
        return {};
    const std::size_t begin = at + phrase.size();
    const std::size_t end = line.find('\'', begin);
    if (end == std::string_view::npos)
        return {};
    return line.substr(begin, end - begin);
}

struct Phrase {
    const char *text;
    const char *metric;
    const char *unit;
};

constexpr Phrase phrases[] = {
    {" registers", "registers", ""},
    {" bytes smem", "static_shared", "B"},
    {" bytes stack frame", "stack_frame", "B"},
    {" bytes spill stores", "spill_stores", "B"},
    {" bytes spill loads", "spill_loads", "B"},
};

} // namespace

std::vector<Metric> metricsFromPtxasLog(std::string_view log)
{
    std::vector<Metric> metrics;
    std::string kernel;
    while (!log.empty()) {
        const std::size_t end = std::min(log.find('\n'), log.size());
        const std::string_view line = log.substr(0, end);
        log.remove_prefix(std::min(end + 1, log.size()));
        if (const auto entry = quotedAfter(line, "Compiling entry function '"))
            kernel = *entry;
        if (kernel.empty())
            continue;
        for (const Phrase &phrase : phrases) {
            if (const auto value = numberBefore(line, phrase.text))
                metrics.push_back({phrase.metric, *value, phrase.unit, kernel});
        }
    }
    return metrics;
}

} // namespace klineage::gate::cuda
