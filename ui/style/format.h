// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace klineage::ui {

// Numbers as the window shows them: a narrow no-break space before the unit, a true minus, a decimal point, thousands apart by a
// thin space. Not translated: they are the field's notation. Something that is not finite gives "–".

/// Three significant digits with a fitting prefix: formatLatency(33900) = "33.9 µs".
[[nodiscard]] QString formatLatency(double ns);
/// A value with its unit. "ns", "B", "FLOP/s", "B/s" get a prefix that fits; "%" and others are kept; "" is a count.
[[nodiscard]] QString formatQuantity(double value, const QString &unit);

/// "2.83×"; one decimal from 10, none from 100, three or four from 0.1 down.
[[nodiscard]] QString formatSpeedup(double speedup);
/// A relative change, 0.123 = "+12.3 %", -0.65 = "−65.0 %"; no decimals from ±100 %.
[[nodiscard]] QString formatPercent(double fraction);
/// A difference of percentages: "−53.0 pp".
[[nodiscard]] QString formatPoints(double points);
/// Half the width of an interval, relative to its value: "± 0.1 %".
[[nodiscard]] QString formatHalfWidth(double value, double low, double high);

/// value with a fixed number of decimals: for columns that share a unit.
[[nodiscard]] QString formatFixed(double value, int decimals);
/// A whole number: "1 048 576".
[[nodiscard]] QString formatCount(qint64 count);

/// The unit in which a column of latencies is shown so that the smallest keeps its digits.
struct LatencyUnit {
    QString symbol;     ///< "ns", "µs", "ms", "s"
    double divisor = 1; ///< nanoseconds in one
    int decimals = 0;
};
[[nodiscard]] LatencyUnit latencyUnitFor(double smallestNs);
/// The number alone; from 1000 of the unit without decimals.
[[nodiscard]] QString formatInUnit(double ns, const LatencyUnit &unit);

} // namespace klineage::ui
