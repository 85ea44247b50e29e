// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/experiments/compare/comparecolumns.h"

namespace klineage::ui {

/// Which runs are shown: terms with blanks between them, all of which must hold.
///   word           some text of the run contains it
///   column=value   and != < <= > >=; "policy=klineage", "gain>=1.5", "model!=\"\""; of texts only = and !=
///   column~part    the text contains it; !~: it does not
/// Quotes hold blanks together. A run without the value fulfils != and !~ alone. Case does not matter.
class CompareFilter
{
public:
    struct Term {
        QString column;     ///< an id; empty: any text
        QString comparison; ///< "=", "!=", "<", "<=", ">", ">=", "~", "!~"
        QString value;
    };

    CompareFilter() = default;
    /// Terms that are none (a column that is not there, a size of a text) are left out and said in `problem`, a sentence; it is empty
    /// otherwise.
    CompareFilter(const QString &text, const std::vector<CompareColumn> &columns, QString *problem);

    [[nodiscard]] bool accepts(const ComparedRun &run, const std::vector<CompareColumn> &columns) const;
    [[nodiscard]] const std::vector<Term> &terms() const { return m_terms; }

private:
    std::vector<Term> m_terms;
};

/// "policy=\"a b\"": a term as it is typed.
[[nodiscard]] QString filterTerm(const QString &column, const QString &comparison, const QString &value);

} // namespace klineage::ui
