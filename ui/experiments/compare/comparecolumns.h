// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/compare/comparedrun.h"

#include <QVariant>

#include <functional>

namespace klineage::ui {

/// A column that runs can be compared by.
struct CompareColumn {
    enum class Kind {
        Text,
        Count,   ///< a whole number; a group has the sum
        Money,   ///< dollars; a group has the sum
        Minutes, ///< a group has the sum
        Share,   ///< 0 to 1; a group has that of all its candidates
        Factor,  ///< an end of an interval; a group has none
        Speedup  ///< with what it compares with; a group has the geometric mean of its successes
    };
    QString id;    ///< as the filter and the CSV file call it: "final_speedup", "option.repairs"
    QString title; ///< "Final"
    QString tip;   ///< what it is, against what, paired or not
    Kind kind = Kind::Text;
    /// A QString, a qlonglong or a double; invalid where the run has none.
    std::function<QVariant(const ComparedRun &)> value = {};
    SpeedupFigure ComparedRun::*figure = nullptr; ///< of a speedup

    [[nodiscard]] bool isNumber() const { return kind != Kind::Text; }
};

/// All that there are: those that every run has, and one for each option and each setting of the author that some of these runs have.
[[nodiscard]] std::vector<CompareColumn> compareColumns(const std::vector<ComparedRun> &runs);
/// Nothing under this id, in whatever case: nullptr.
[[nodiscard]] const CompareColumn *findColumn(const std::vector<CompareColumn> &columns, const QString &id);
/// Those that are shown until somebody chooses others.
[[nodiscard]] QStringList defaultCompareColumns();

/// The value on the screen: "≈ 2.31×" where it was not paired, "$0.12", "12 of 40 %"; "–" for none.
[[nodiscard]] QString shownValue(const CompareColumn &column, const ComparedRun &run);
/// The value with all of its digits; empty for none.
[[nodiscard]] QString exactValue(const QVariant &value);

/// A value of several runs, as their column says, and how many of them it is of.
struct CompareSum {
    QVariant value;    ///< a double; of texts the one that all have; invalid: none
    int of = 0;        ///< runs that it is made from
    int different = 0; ///< different texts
};
[[nodiscard]] CompareSum sumOf(const CompareColumn &column, const std::vector<const ComparedRun *> &runs);
[[nodiscard]] QString shownSum(const CompareColumn &column, const CompareSum &sum, int runs);

/// Less than 0, 0 or more: numbers by size, texts as people sort them ("s2" before "s10"). What is missing is last in any order.
[[nodiscard]] int compareValues(const QVariant &a, const QVariant &b);

} // namespace klineage::ui
