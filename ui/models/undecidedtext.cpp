// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/undecidedtext.h"

#include "core/trial/disturbance.h"
#include "core/trial/statistics.h"
#include "ui/models/disturbancetext.h"
#include "ui/style/format.h"

#include <QCoreApplication>
#include <QStringList>

#include <optional>

namespace klineage::ui {

namespace {

constexpr double fewestRounds = 5;

QString undecidedWords(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Undecided", text);
}

QString evidenceOf(const gate::Trial &trial, std::string_view name)
{
    for (const gate::Evidence &item : trial.verdict.evidence) {
        if (item.name == name)
            return QString::fromStdString(item.value);
    }
    return {};
}

/// The number that the value of an evidence begins with: "64", "0.45 %".
std::optional<double> numberOf(const gate::Trial &trial, std::string_view name)
{
    bool isNumber = false;
    const double value = evidenceOf(trial, name).section(QLatin1Char(' '), 0, 0).toDouble(&isNumber);
    return isNumber ? std::optional(value) : std::nullopt;
}

QString percentText(double fraction)
{
    return formatFixed(100 * fraction, 2) + QStringLiteral("\u202f%");
}

/// As a share of the median, like the interval beside it.
QString widthText(double halfWidth, double value)
{
    return QChar(0x00b1) + percentText(halfWidth / value);
}

/// What the interval leaves open, and what it would take.
QString openText(const gate::Trial &trial, const gate::Interval &speedup)
{
    const double noGain = 1.0 + gate::significantChange(std::nullopt);
    const double least = numberOf(trial, "least_change").value_or(100 * (noGain - 1.0)) / 100;
    const double wide = gate::halfWidth(speedup);
    // The interval keeps its shape as it narrows about the median.
    const auto tooWide = [&](const char *text, double distance, double side) {
        return undecidedWords(text).arg(widthText(wide, speedup.value), formatSpeedup(speedup.value),
                                        widthText(side > 0 ? wide * distance / side : wide, speedup.value));
    };
    if (const double over = speedup.value - (1.0 + least); over > 0)
        return tooWide("Undecided: %1 is too wide to tell whether %2 is a gain; that takes less than %3.",
                       over, speedup.value - speedup.low);
    if (const double below = 1.0 - least - speedup.value; below > 0)
        return tooWide("Undecided: %1 is too wide to tell whether %2 is a loss; that takes less than %3.",
                       below, speedup.high - speedup.value);
    if (const double below = noGain - speedup.value; below > 0)
        return tooWide("Undecided: %1 is too wide to rule out that %2 is a gain; that takes less than %3.",
                       below, speedup.high - speedup.value);
    return undecidedWords("Undecided: %1 is within the noise, here %2.")
        .arg(formatSpeedup(speedup.value), percentText(least));
}

/// Why a gain over the parent is not counted, which no longer timing changes; empty: it is not for such a reason.
QString withheldText(const gate::Trial &trial)
{
    if (const QString seen = evidenceOf(trial, "less_precise"); !seen.isEmpty())
        return undecidedWords("Undecided: the gain may come from fewer bits: %1.").arg(seen);
    if (const QString seen = evidenceOf(trial, "clock"); !seen.isEmpty())
        return undecidedWords("Undecided: the clock may have been changed: %1.").arg(seen);
    if (const QString seen = evidenceOf(trial, "only_replayed"); !seen.isEmpty())
        return undecidedWords("Undecided: the gain is there in replayed graphs alone: %1.").arg(seen);
    return {};
}

} // namespace

QString undecidedText(const gate::Trial &trial, const gate::Comparison &comparison)
{
    if (comparison.change != gate::Change::Undecided)
        return {};
    const std::optional<double> rounds = numberOf(trial, "rounds");
    QStringList said;
    if (const QString why = withheldText(trial); !why.isEmpty() && comparison.against == "parent")
        said << why;
    else if (rounds && *rounds < fewestRounds)
        said << undecidedWords("Undecided: %1 rounds were timed, and fewer than five decide nothing.")
                    .arg(formatFixed(*rounds, 0));
    else
        said << openText(trial, comparison.speedup);
    for (const gate::Disturbance &disturbance : gate::disturbancesOf(trial)) {
        const QString words = disturbanceInWords(disturbance);
        said << (words.startsWith(QLatin1String("! ")) ? words.mid(2) : words);
    }
    if (const auto spread = numberOf(trial, "aa_spread");
        spread && *spread / 100 > gate::significantChange(std::nullopt) / 2)
        said
            << undecidedWords(
                   "Two copies of the candidate itself seemed %1 apart, so that less than twice that is noise.")
                   .arg(percentText(*spread / 100));
    if (rounds && evidenceOf(trial, "stopped_by") == QLatin1String("time_limit"))
        said << undecidedWords("The time for it ran out after %1 rounds.").arg(formatFixed(*rounds, 0));
    return said.join(QLatin1Char(' '));
}

} // namespace klineage::ui
