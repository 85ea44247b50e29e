// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/retry.h"

#include "core/process/deadline.h"
#include "core/process/stopevent.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

namespace klineage::llm {

namespace {

constexpr std::array months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/// A number of exactly this many digits at the beginning of text, which it takes off.
std::optional<int> takeDigits(std::string_view &text, std::size_t digits)
{
    int value = 0;
    if (text.size() < digits)
        return {};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + digits, value);
    if (problem != std::errc() || end != text.data() + digits || text[0] == '-')
        return {};
    text.remove_prefix(digits);
    return value;
}

bool take(std::string_view &text, std::string_view expected)
{
    if (!text.starts_with(expected))
        return false;
    text.remove_prefix(expected.size());
    return true;
}

/// "Sun, 06 Nov 1994 08:49:37 GMT": the only form that servers send today.
std::optional<std::int64_t> parseHttpDate(std::string_view text)
{
    if (text.size() < 5 || text.substr(3, 2) != ", ")
        return {};
    text.remove_prefix(5);
    std::tm time{};
    const auto day = takeDigits(text, 2);
    if (!day || !take(text, " "))
        return {};
    const auto month = std::find(months.begin(), months.end(), text.substr(0, 3));
    if (month == months.end())
        return {};
    text.remove_prefix(3);
    if (!take(text, " "))
        return {};
    const auto year = takeDigits(text, 4);
    if (!year || !take(text, " "))
        return {};
    const auto hour = takeDigits(text, 2);
    if (!hour || !take(text, ":"))
        return {};
    const auto minute = takeDigits(text, 2);
    if (!minute || !take(text, ":"))
        return {};
    const auto second = takeDigits(text, 2);
    if (!second || text != " GMT" || *day < 1 || *day > 31 || *hour > 23 || *minute > 59 || *second > 60)
        return {};
    time.tm_mday = *day;
    time.tm_mon = static_cast<int>(month - months.begin());
    time.tm_year = *year - 1900;
    time.tm_hour = *hour;
    time.tm_min = *minute;
    time.tm_sec = *second;
    return static_cast<std::int64_t>(::timegm(&time));
}

std::string_view trimmed(std::string_view text)
{
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

} // namespace

double retryDelay(const RetryPolicy &policy, int attempt, std::optional<double> retryAfter,
                  std::mt19937_64 &random)
{
    const double doubled = policy.firstDelaySeconds * std::pow(2.0, std::min(attempt - 1, 30));
    const double whole = std::min(policy.maxDelaySeconds, doubled);
    const double part = static_cast<double>(random() >> 11) * 0x1p-53; // 0 … 1
    const double delay = whole * (0.5 + 0.5 * part);
    if (!retryAfter)
        return delay;
    return std::max(delay, std::min(*retryAfter, policy.maxDelaySeconds));
}

std::optional<double> parseRetryAfter(std::string_view value, std::int64_t nowUnix)
{
    value = trimmed(value);
    double seconds = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), seconds);
    if (problem == std::errc() && end == value.data() + value.size() && std::isfinite(seconds))
        return std::max(0.0, seconds);
    if (const auto date = parseHttpDate(value))
        return static_cast<double>(std::max<std::int64_t>(0, *date - nowUnix));
    return {};
}

bool sleepFor(double seconds, const std::stop_token &stop)
{
    const process::StopEvent stopEvent(stop);
    const auto deadline = process::Deadline::in(seconds);
    while (!stop.stop_requested() && !deadline.passed()) {
        pollfd waiting{stopEvent.fd(), POLLIN, 0};
        ::poll(&waiting, 1, deadline.pollTimeoutMs());
    }
    return !stop.stop_requested();
}

} // namespace klineage::llm
