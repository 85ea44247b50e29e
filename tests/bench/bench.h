// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

#include <functional>
#include <optional>
#include <vector>

namespace klineage::bench {

/// Prints figures, one JSON line each: {"name","value","p50","p95","unit","goal","ok","note"}; or as a table for people.
class Reporter
{
public:
    enum class Form { Json, Table };
    explicit Reporter(Form form = Form::Json, bool withDetails = false);

    /// Of many samples: "value" and "p95" are what 95 % of them keep to, and that is held against the goal.
    void samplesAtMost(const QString &name, const std::vector<double> &samples, const QString &unit,
                       double goal, const QString &note = {});
    /// The same of rates, where more is better: 95 % of them reach "p95".
    void samplesAtLeast(const QString &name, const std::vector<double> &samples, const QString &unit,
                        double goal, const QString &note = {});
    /// Samples without a goal.
    void samplesInfo(const QString &name, const std::vector<double> &samples, const QString &unit,
                     const QString &note = {});
    /// goal: the figure is good when it is at most this. Repeating a name is an error of the group.
    void atMost(const QString &name, double value, const QString &unit, double goal,
                const QString &note = {});
    void atLeast(const QString &name, double value, const QString &unit, double goal,
                 const QString &note = {});
    /// A figure without a goal: "goal" is null and "ok" true.
    void info(const QString &name, double value, const QString &unit, const QString &note = {});
    /// Something that could not be measured, and why: "value" is null and "ok" false.
    void missing(const QString &name, const QString &why);

    /// What lies behind a figure, for reading: printed where it is asked for. {"name","detail"}
    void detail(const QString &name, const QString &text) const;

    [[nodiscard]] int failures() const { return m_failures; }

private:
    struct Figure {
        std::optional<double> value;
        std::optional<double> middle; ///< p50, of samples
        QString unit;
        std::optional<double> goal;
        bool isMost = true; ///< the goal is the most; else the least
        QString note;
    };
    void print(const QString &name, const Figure &figure);
    void printRow(const QString &name, const Figure &figure, bool isMet) const;

    Form m_form;
    bool m_withDetails;
    int m_failures = 0;
};

/// A group of figures. A file in this folder defines one and registers it with a static Group; the build lists the file.
struct Group {
    QString name;
    QString summary;
    std::function<void(Reporter &)> run; ///< on the GUI thread, with a QApplication
    bool isPartOfAnother = false;        ///< its rows are also those of another group: "all" has them once

    Group(const char *groupName, const char *groupSummary, std::function<void(Reporter &)> runGroup,
          bool partOfAnother = false);
    [[nodiscard]] static std::vector<const Group *> &all();
};

/// What milliseconds are counted in: time as it passes, or, on a machine that is busy with other things, the time that the processors gave to
/// all threads of the process. The latter leaves waiting out, and threads that work at once are added up.
enum class Clock { Wall, Processor };
void setClock(Clock clock);
[[nodiscard]] Clock clockInUse();

/// Milliseconds that a function takes.
[[nodiscard]] double millisecondsOf(const std::function<void()> &function);
/// Median of some runs, after one that does not count.
[[nodiscard]] double medianMilliseconds(int runs, const std::function<void()> &function);
/// Each of some runs, after one that does not count.
[[nodiscard]] std::vector<double> millisecondsEach(int runs, const std::function<void()> &function);
/// Lets the event loop work, and sleep between the events, until something has come about: the processors are for the window's threads.
void workUntil(const std::function<bool()> &hasCome);
/// The value below which a fraction of the samples lies.
[[nodiscard]] double percentile(std::vector<double> samples, double fraction);

} // namespace klineage::bench
