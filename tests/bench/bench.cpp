// SPDX-License-Identifier: GPL-3.0-or-later
#include "bench.h"

#include <QCoreApplication>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTimer>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace klineage::bench {

namespace {

Clock clockOfAll = Clock::Wall;

/// Three decimals are more than any clock here is worth.
double rounded(double value)
{
    return std::round(value * 1000) / 1000;
}

} // namespace

Reporter::Reporter(Form form, bool withDetails)
    : m_form(form)
    , m_withDetails(withDetails)
{
    if (m_form == Form::Table)
        std::printf("%-30s %10s %10s %14s  %s\n", "what", "p50", "p95", "goal", "");
}

void Reporter::print(const QString &name, const Figure &figure)
{
    const bool isMet =
        figure.value
        && (!figure.goal || (figure.isMost ? *figure.value <= *figure.goal : *figure.value >= *figure.goal));
    m_failures += isMet ? 0 : 1;
    if (m_form == Form::Table) {
        printRow(name, figure, isMet);
        return;
    }
    const auto number = [](const std::optional<double> &value) {
        return value ? QJsonValue(rounded(*value)) : QJsonValue();
    };
    QJsonObject line{{QStringLiteral("name"), name},        {QStringLiteral("value"), number(figure.value)},
                     {QStringLiteral("unit"), figure.unit}, {QStringLiteral("goal"), number(figure.goal)},
                     {QStringLiteral("ok"), isMet},         {QStringLiteral("note"), figure.note}};
    if (figure.middle) {
        line[QStringLiteral("p50")] = number(figure.middle);
        line[QStringLiteral("p95")] = number(figure.value);
    }
    std::printf("%s\n", QJsonDocument(line).toJson(QJsonDocument::Compact).constData());
    std::fflush(stdout);
}

void Reporter::printRow(const QString &name, const Figure &figure, bool isMet) const
{
    const auto number = [](const std::optional<double> &value) {
        return value ? QString::number(*value, 'f', *value < 10 ? 2 : 1) : QStringLiteral("–");
    };
    const QString goal = figure.goal ? QStringLiteral("%1 %2 %3")
                                           .arg(figure.isMost ? QStringLiteral("≤") : QStringLiteral("≥"),
                                                number(figure.goal), figure.unit)
                                     : figure.unit;
    const char *verdict = !figure.value ? "not measured" : !figure.goal ? "" : isMet ? "met" : "MISSED";
    // By characters: printf counts bytes.
    const QString row = name.leftJustified(30) + number(figure.middle).rightJustified(11)
                        + number(figure.value).rightJustified(11) + goal.rightJustified(15)
                        + QStringLiteral("  ") + QString::fromLatin1(verdict).leftJustified(7) + figure.note;
    std::printf("%s\n", qPrintable(row));
    std::fflush(stdout);
}

void Reporter::atMost(const QString &name, double value, const QString &unit, double goal,
                      const QString &note)
{
    print(name, {value, {}, unit, goal, true, note});
}

void Reporter::atLeast(const QString &name, double value, const QString &unit, double goal,
                       const QString &note)
{
    print(name, {value, {}, unit, goal, false, note});
}

void Reporter::samplesAtMost(const QString &name, const std::vector<double> &samples, const QString &unit,
                             double goal, const QString &note)
{
    print(name, {percentile(samples, 0.95), percentile(samples, 0.5), unit, goal, true, note});
}

void Reporter::samplesAtLeast(const QString &name, const std::vector<double> &samples, const QString &unit,
                              double goal, const QString &note)
{
    print(name, {percentile(samples, 0.05), percentile(samples, 0.5), unit, goal, false, note});
}

void Reporter::samplesInfo(const QString &name, const std::vector<double> &samples, const QString &unit,
                           const QString &note)
{
    print(name, {percentile(samples, 0.95), percentile(samples, 0.5), unit, {}, true, note});
}

void Reporter::info(const QString &name, double value, const QString &unit, const QString &note)
{
    print(name, {value, {}, unit, {}, true, note});
}

void Reporter::missing(const QString &name, const QString &why)
{
    print(name, {{}, {}, {}, {}, true, why});
}

void Reporter::detail(const QString &name, const QString &text) const
{
    if (!m_withDetails)
        return;
    const QJsonObject line{{QStringLiteral("name"), name}, {QStringLiteral("detail"), text}};
    std::printf("%s\n", m_form == Form::Table
                            ? qPrintable(QStringLiteral("  ") + text)
                            : QJsonDocument(line).toJson(QJsonDocument::Compact).constData());
}

Group::Group(const char *groupName, const char *groupSummary, std::function<void(Reporter &)> runGroup,
             bool partOfAnother)
    : name(QString::fromUtf8(groupName))
    , summary(QString::fromUtf8(groupSummary))
    , run(std::move(runGroup))
    , isPartOfAnother(partOfAnother)
{
    all().push_back(this);
}

std::vector<const Group *> &Group::all()
{
    static std::vector<const Group *> groups;
    return groups;
}

void setClock(Clock wanted)
{
    clockOfAll = wanted;
}

Clock clockInUse()
{
    return clockOfAll;
}

double millisecondsOf(const std::function<void()> &function)
{
    const auto nowMs = [] {
        timespec now{};
        clock_gettime(clockOfAll == Clock::Wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
    };
    const double begin = nowMs();
    function();
    return nowMs() - begin;
}

double medianMilliseconds(int runs, const std::function<void()> &function)
{
    return percentile(millisecondsEach(runs, function), 0.5);
}

std::vector<double> millisecondsEach(int runs, const std::function<void()> &function)
{
    function();
    std::vector<double> samples;
    for (int i = 0; i < runs; ++i)
        samples.push_back(millisecondsOf(function));
    return samples;
}

void workUntil(const std::function<bool()> &hasCome)
{
    QTimer tick; // it may come about without an event
    tick.start(5);
    while (!hasCome())
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

double percentile(std::vector<double> samples, double fraction)
{
    if (samples.empty())
        return 0;
    const auto index =
        std::max<std::size_t>(
            static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(samples.size()))), 1)
        - 1;
    const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::min(index, samples.size() - 1));
    std::nth_element(samples.begin(), at, samples.end());
    return *at;
}

} // namespace klineage::bench
