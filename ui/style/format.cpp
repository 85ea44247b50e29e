// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/format.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace klineage::ui {

namespace {

const QChar thinSpace(0x2009);
const QChar unitSpace(0x202f);
const QChar minus(0x2212);

struct Prefix {
    double factor;
    const char *symbol;
};

constexpr std::array decimalPrefixes = {Prefix{1e12, "T"}, Prefix{1e9, "G"}, Prefix{1e6, "M"},
                                        Prefix{1e3, "k"}};
constexpr std::array binaryPrefixes = {Prefix{1024.0 * 1024 * 1024, "Gi"}, Prefix{1024.0 * 1024, "Mi"},
                                       Prefix{1024.0, "Ki"}};
constexpr std::array timeUnits = {Prefix{1e9, "s"}, Prefix{1e6, "ms"}, Prefix{1e3, "µs"}};

QString none()
{
    return QStringLiteral("–");
}

/// Decimals that leave three significant digits.
int decimalsFor(double value)
{
    const double size = std::abs(value);
    return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

QString grouped(const QString &digits)
{
    const qsizetype point = digits.indexOf(QLatin1Char('.'));
    const qsizetype whole = point < 0 ? digits.size() : point;
    if (whole <= 4)
        return digits;
    QString text = digits;
    for (qsizetype i = whole - 3; i > 0; i -= 3)
        text.insert(i, thinSpace);
    return text;
}

QString plain(double value, int decimals)
{
    const QString digits = grouped(QString::number(std::abs(value), 'f', decimals));
    const bool isZero = QString::number(std::abs(value), 'f', decimals).toDouble() == 0.0;
    return value < 0 && !isZero ? minus + digits : digits;
}

QString withUnit(const QString &number, const QString &unit)
{
    return unit.isEmpty() ? number : number + unitSpace + unit;
}

// Largest first, as above; what is smaller than all of them keeps the last.
constexpr std::array smallPrefixes = {Prefix{1, ""}, Prefix{1e-3, "m"}, Prefix{1e-6, "µ"}, Prefix{1e-9, "n"}};

QString smallQuantity(double value, const QString &unit)
{
    for (const Prefix &prefix : smallPrefixes) {
        if (std::abs(value) >= prefix.factor * 0.9995 || &prefix == &smallPrefixes.back()) {
            const double scaled = value / prefix.factor;
            return withUnit(plain(scaled, decimalsFor(scaled)), QString::fromUtf8(prefix.symbol) + unit);
        }
    }
    return {};
}

template <std::size_t N>
QString prefixed(double value, const std::array<Prefix, N> &prefixes, const QString &unit)
{
    // Rounding must not give "1000 µs": the next prefix starts where three digits round up to it.
    for (const Prefix &prefix : prefixes) {
        if (std::abs(value) >= prefix.factor * 0.9995) {
            const double scaled = value / prefix.factor;
            return withUnit(plain(scaled, decimalsFor(scaled)), QString::fromUtf8(prefix.symbol) + unit);
        }
    }
    const bool isWhole = value == std::floor(value);
    return withUnit(plain(value, isWhole ? 0 : decimalsFor(value)), unit);
}

QString signedText(const QString &text, double value)
{
    return value > 0 && text != none() ? QLatin1Char('+') + text : text;
}

} // namespace

QString formatLatency(double ns)
{
    return formatQuantity(ns, QStringLiteral("ns"));
}

QString formatQuantity(double value, const QString &unit)
{
    if (!std::isfinite(value))
        return none();
    if (unit == QLatin1String("ns")) {
        for (const Prefix &time : timeUnits) {
            if (std::abs(value) >= time.factor * 0.9995) {
                const double scaled = value / time.factor;
                return withUnit(plain(scaled, decimalsFor(scaled)), QString::fromUtf8(time.symbol));
            }
        }
        return withUnit(plain(value, decimalsFor(value)), unit);
    }
    if (unit == QLatin1String("B"))
        return prefixed(value, binaryPrefixes, unit);
    if (unit == QLatin1String("FLOP/s") || unit == QLatin1String("B/s") || unit == QLatin1String("Hz"))
        return prefixed(value, decimalPrefixes, unit);
    if (unit == QLatin1String("J") && value != 0 && std::abs(value) < 0.9995)
        return smallQuantity(value, unit);
    if (value == std::floor(value) && std::abs(value) < 1e15 && unit != QLatin1String("%"))
        return withUnit(plain(value, 0), unit);
    return withUnit(plain(value, unit == QLatin1String("%") ? 1 : decimalsFor(value)), unit);
}

QString formatSpeedup(double speedup)
{
    if (!std::isfinite(speedup) || speedup <= 0)
        return none();
    int decimals = decimalsFor(speedup);
    if (speedup < 0.0995)
        decimals = std::clamp(1 - static_cast<int>(std::floor(std::log10(speedup))), 3, 4);
    return plain(speedup, decimals) + QChar(0x00d7);
}

QString formatPercent(double fraction)
{
    if (!std::isfinite(fraction))
        return none();
    const double percent = fraction * 100;
    return signedText(withUnit(plain(percent, std::abs(percent) >= 99.95 ? 0 : 1), QStringLiteral("%")),
                      percent);
}

QString formatPoints(double points)
{
    if (!std::isfinite(points))
        return none();
    return signedText(withUnit(plain(points, 1), QStringLiteral("pp")), points);
}

QString formatHalfWidth(double value, double low, double high)
{
    if (!std::isfinite(value) || !std::isfinite(low) || !std::isfinite(high) || value == 0)
        return none();
    const double percent = std::abs((high - low) / 2 / value) * 100;
    return QChar(0x00b1)
           + withUnit(unitSpace
                          + plain(percent, percent < 1 ? (percent < 0.1 ? 2 : 1) : decimalsFor(percent * 10)),
                      QStringLiteral("%"));
}

QString formatFixed(double value, int decimals)
{
    return std::isfinite(value) ? plain(value, decimals) : none();
}

QString formatCount(qint64 count)
{
    const QString digits = grouped(QString::number(count < 0 ? -count : count));
    return count < 0 ? minus + digits : digits;
}

LatencyUnit latencyUnitFor(double smallestNs)
{
    LatencyUnit unit{QStringLiteral("ns"), 1.0, 0};
    for (const Prefix &time : timeUnits) {
        if (smallestNs >= time.factor) {
            unit = {QString::fromUtf8(time.symbol), time.factor, 0};
            break;
        }
    }
    const double scaled = smallestNs / unit.divisor;
    unit.decimals = scaled < 10 ? 2 : 1;
    return unit;
}

QString formatInUnit(double ns, const LatencyUnit &unit)
{
    const double scaled = ns / unit.divisor;
    return formatFixed(scaled, scaled >= 999.5 ? 0 : unit.decimals);
}

} // namespace klineage::ui
