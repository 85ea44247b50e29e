// SPDX-License-Identifier: GPL-3.0-or-later
#include "bench.h"

#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace klineage::bench {

namespace {

/// Three decimals are more than any clock here is worth.
double rounded(double value)
{
    return std::round(value * 1000) / 1000;
}

} // namespace

void Reporter::print(const QString &name, const double *value, const QString &unit, const double *goal,
                     bool ok, const QString &note)
{
    const QJsonObject line{{QStringLiteral("name"), name},
                           {QStringLiteral("value"), value ? QJsonValue(rounded(*value)) : QJsonValue()},
                           {QStringLiteral("unit"), unit},
                           {QStringLiteral("goal"), goal ? QJsonValue(*goal) : QJsonValue()},
                           {QStringLiteral("ok"), ok},
                           {QStringLiteral("note"), note}};
    std::printf("%s\n", QJsonDocument(line).toJson(QJsonDocument::Compact).constData());
    std::fflush(stdout);
    m_failures += ok ? 0 : 1;
}

void Reporter::atMost(const QString &name, double value, const QString &unit, double goal,
                      const QString &note)
{
    print(name, &value, unit, &goal, value <= goal, note);
}

void Reporter::atLeast(const QString &name, double value, const QString &unit, double goal,
                       const QString &note)
{
    print(name, &value, unit, &goal, value >= goal, note);
}

void Reporter::info(const QString &name, double value, const QString &unit, const QString &note)
{
    print(name, &value, unit, nullptr, true, note);
}

void Reporter::missing(const QString &name, const QString &why)
{
    print(name, nullptr, {}, nullptr, false, why);
}

Group::Group(const char *groupName, const char *groupSummary, std::function<void(Reporter &)> runGroup)
    : name(QString::fromUtf8(groupName))
    , summary(QString::fromUtf8(groupSummary))
    , run(std::move(runGroup))
{
    all().push_back(this);
}

std::vector<const Group *> &Group::all()
{
    static std::vector<const Group *> groups;
    return groups;
}

double millisecondsOf(const std::function<void()> &function)
{
    QElapsedTimer elapsed;
    elapsed.start();
    function();
    return static_cast<double>(elapsed.nsecsElapsed()) / 1e6;
}

double medianMilliseconds(int runs, const std::function<void()> &function)
{
    function();
    std::vector<double> samples;
    for (int i = 0; i < runs; ++i)
        samples.push_back(millisecondsOf(function));
    return percentile(samples, 0.5);
}

double percentile(std::vector<double> samples, double fraction)
{
    if (samples.empty())
        return 0;
    const auto index =
        static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(samples.size()))) - 1;
    const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::min(index, samples.size() - 1));
    std::nth_element(samples.begin(), at, samples.end());
    return *at;
}

} // namespace klineage::bench
