// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <functional>
#include <vector>

namespace klineage::bench {

/// Prints figures, one JSON line each: {"name","value","unit","goal","ok","note"}.
class Reporter
{
public:
    /// goal: the figure is good when it is at most this. Repeating a name is an error of the group.
    void atMost(const QString &name, double value, const QString &unit, double goal,
                const QString &note = {});
    void atLeast(const QString &name, double value, const QString &unit, double goal,
                 const QString &note = {});
    /// A figure without a goal: "goal" is null and "ok" true.
    void info(const QString &name, double value, const QString &unit, const QString &note = {});
    /// Something that could not be measured, and why: "value" is null and "ok" false.
    void missing(const QString &name, const QString &why);

    [[nodiscard]] int failures() const { return m_failures; }

private:
    void print(const QString &name, const double *value, const QString &unit, const double *goal, bool ok,
               const QString &note);

    int m_failures = 0;
};

/// A group of figures. A file in this folder defines one and registers it with a static Group; the build lists the file.
struct Group {
    QString name;
    QString summary;
    std::function<void(Reporter &)> run; ///< on the GUI thread, with a QApplication

    Group(const char *groupName, const char *groupSummary, std::function<void(Reporter &)> runGroup);
    [[nodiscard]] static std::vector<const Group *> &all();
};

/// Milliseconds that a function takes.
[[nodiscard]] double millisecondsOf(const std::function<void()> &function);
/// Median of some runs, after one that does not count.
[[nodiscard]] double medianMilliseconds(int runs, const std::function<void()> &function);
/// The value below which a fraction of the samples lies.
[[nodiscard]] double percentile(std::vector<double> samples, double fraction);

} // namespace klineage::bench
