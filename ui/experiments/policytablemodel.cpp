// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/policytablemodel.h"

#include "ui/runs/runentry.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

/// Of a column that shows a measure of papers; nullptr: of another.
const run::MeasureNote *noteOf(int column)
{
    switch (column) {
    case PolicyTableModel::CorrectColumn:
        return &run::correctNote;
    case PolicyTableModel::Fast1Column:
    case PolicyTableModel::Fast2Column:
        return &run::fastNote;
    case PolicyTableModel::AmsrColumn:
        return &run::amsrNote;
    default:
        return nullptr;
    }
}

QString noteText(const run::MeasureNote &note)
{
    return QStringLiteral("%1\n%2").arg(QString::fromUtf8(note.definition), QString::fromUtf8(note.source));
}

QString measureText(const run::Measures &of, int column)
{
    const auto share = [](double value) { return QStringLiteral("%1 %").arg(formatFixed(100 * value, 0)); };
    if (of.instances == 0)
        return QStringLiteral("–");
    switch (column) {
    case PolicyTableModel::CorrectColumn:
        return share(of.correct);
    case PolicyTableModel::Fast1Column:
        return share(of.fast1);
    case PolicyTableModel::Fast2Column:
        return share(of.fast2);
    default:
        return formatFixed(of.amsr, 2);
    }
}

bool isPolicyNumber(int column)
{
    return column != PolicyTableModel::RootColumn && column != PolicyTableModel::PolicyColumn
           && column != PolicyTableModel::SpreadColumn;
}

} // namespace

PolicyTableModel::PolicyTableModel(QObject *parent)
    : QAbstractTableModel(parent)
{}

void PolicyTableModel::show(const ExperimentEntryPtr &experiment, const QString &root)
{
    std::vector<run::PolicyResult> rows;
    if (experiment) {
        const bool oneRoot = experiment->experiment.roots.size() == 1;
        for (const run::PolicyResult &row : experiment->results.policies) {
            const bool isWanted =
                root.isEmpty() ? !(oneRoot && row.root.empty()) : row.root == root.toStdString();
            if (isWanted)
                rows.push_back(row);
        }
    }
    const bool sameShape = std::equal(rows.begin(), rows.end(), m_rows.begin(), m_rows.end(),
                                      [](const run::PolicyResult &a, const run::PolicyResult &b) {
                                          return a.policy == b.policy && a.root == b.root;
                                      });
    if (!sameShape)
        beginResetModel();
    m_experiment = experiment;
    m_rows = std::move(rows);
    measure();
    if (!sameShape)
        endResetModel();
    else if (!m_rows.empty())
        emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
}

/// One logarithmic scale for all rows, with the reference (1×) on it.
void PolicyTableModel::measure()
{
    m_spreads.clear();
    double left = 0;
    double right = 0;
    for (const run::PolicyResult &row : m_rows) {
        Spread spread;
        spread.mean = row.geometricMean;
        spread.failures = row.failures;
        const auto &policies = m_experiment->experiment.policies;
        spread.series = static_cast<std::size_t>(std::find(policies.begin(), policies.end(), row.policy)
                                                 - policies.begin());
        for (const run::CellResult &cell : m_experiment->results.cells) {
            if (!cell.isSuccess() || cell.cell.policy != row.policy
                || (!row.root.empty() && cell.cell.root != row.root))
                continue;
            spread.finals.push_back(cell.summary.finalSpeedup);
            left = std::min(left, std::log(cell.summary.finalSpeedup));
            right = std::max(right, std::log(cell.summary.finalSpeedup));
        }
        m_spreads.push_back(std::move(spread));
    }
    const double margin = std::max(0.1, 0.06 * (right - left));
    for (Spread &spread : m_spreads) {
        spread.left = left - margin;
        spread.right = right + margin;
    }
}

int PolicyTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int PolicyTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

double PolicyTableModel::against(int row) const
{
    const run::PolicyResult &own = m_rows[static_cast<std::size_t>(row)];
    const auto first = std::find_if(m_rows.begin(), m_rows.end(),
                                    [&](const run::PolicyResult &other) { return other.root == own.root; });
    return first->successes > 0 && own.successes > 0 ? own.geometricMean / first->geometricMean : 0;
}

const run::ArmResult *PolicyTableModel::arm(int row) const
{
    const run::PolicyResult &own = m_rows[static_cast<std::size_t>(row)];
    const auto &arms = m_experiment->arms;
    const auto found = std::find_if(arms.begin(), arms.end(), [&](const run::ArmResult &one) {
        return one.policy == own.policy && one.root == own.root;
    });
    return found == arms.end() ? nullptr : &*found;
}

const run::Measures *PolicyTableModel::measures(int row) const
{
    const run::PolicyResult &own = m_rows[static_cast<std::size_t>(row)];
    const auto &all = m_experiment->measures;
    const auto found = std::find_if(all.begin(), all.end(), [&](const run::Measures &one) {
        return one.policy == own.policy && one.root == own.root;
    });
    return found == all.end() ? nullptr : &*found;
}

QString PolicyTableModel::armTip(const run::ArmResult &arm, int column) const
{
    if (column == GainColumn)
        return tr("Geometric mean of T_root / T_final, paired, over the %1 runs that are over; one without a faster candidate "
                  "counts as 1. The first candidate was correct in %2 of them.")
            .arg(arm.runs)
            .arg(arm.firstRight);
    const QString reached =
        tr("Runs whose audited candidate reached the gain over its root that was named before the first run, "
           "of those that are over.");
    return arm.reached == 0
               ? reached
               : reached + QLatin1Char(' ')
                     + tr("They took %1 questions and %2 to it, on average.")
                           .arg(QString::number(arm.questions, 'f', 1), formatDollars(arm.dollars));
}

QString PolicyTableModel::text(int row, int column) const
{
    const run::PolicyResult &result = m_rows[static_cast<std::size_t>(row)];
    if (column == GoalColumn || column == GainColumn) {
        const run::ArmResult *own = arm(row);
        if (!own || own->runs == 0)
            return QStringLiteral("–");
        return column == GainColumn ? formatSpeedup(own->gain)
                                    : QStringLiteral("%1/%2").arg(own->reached).arg(own->runs);
    }
    if (noteOf(column)) {
        const run::Measures *of = measures(row);
        return of ? measureText(*of, column) : QStringLiteral("–");
    }
    const auto orDash = [](double speedup) {
        return speedup > 0 ? formatSpeedup(speedup) : QStringLiteral("–");
    };
    switch (column) {
    case RootColumn:
        return result.root.empty() ? tr("all roots") : QString::fromStdString(result.root);
    case PolicyColumn:
        return QString::fromStdString(result.policy);
    case MeanColumn:
        return orDash(result.geometricMean);
    case SuccessColumn:
        return QStringLiteral("%1/%2")
            .arg(result.successes)
            .arg(result.successes + result.failures + result.unfinished);
    case FailureColumn:
        return QString::number(result.failures);
    case UnfinishedColumn:
        return QString::number(result.unfinished);
    case AgainstColumn:
        return orDash(against(row));
    case CostColumn:
        return formatDollars(result.dollars);
    default:
        return {};
    }
}

QString PolicyTableModel::tip(int row, int column) const
{
    if (const run::ArmResult *own = arm(row); own && (column == GoalColumn || column == GainColumn))
        return armTip(*own, column);
    const run::Measures *of = measures(row);
    if (const run::MeasureNote *note = noteOf(column); note && of)
        return tr("Of the %1 runs that are over. %2").arg(of->instances).arg(noteText(*note));
    const Spread &spread = m_spreads[static_cast<std::size_t>(row)];
    QStringList finals;
    for (const double final : spread.finals)
        finals << formatSpeedup(final);
    switch (column) {
    case MeanColumn:
    case SpreadColumn:
        return finals.isEmpty()
                   ? tr("No run has ended with a candidate that is faster than its root.")
                   : tr("Final speedups of the successes: %1. Their geometric mean is %2; failures are "
                        "counted beside it and not averaged.")
                         .arg(finals.join(QStringLiteral(", ")), formatSpeedup(spread.mean));
    case AgainstColumn:
        return tr("Geometric mean relative to that of %1 on the same root, each over its own successes.")
            .arg(QString::fromStdString(m_rows.front().policy));
    case SuccessColumn:
        return tr("Runs that ended with a candidate that is faster than the root, of all.");
    case FailureColumn:
        return tr("Runs that ended without a candidate that is faster than the root.");
    case UnfinishedColumn:
        return tr("Runs that are not over, or have not begun.");
    default:
        return text(row, column);
    }
}

QVariant PolicyTableModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const run::PolicyResult &result = m_rows[static_cast<std::size_t>(index.row())];
    switch (role) {
    case Qt::DisplayRole:
        return text(index.row(), index.column());
    case Qt::ToolTipRole:
        return tip(index.row(), index.column());
    case Qt::AccessibleTextRole:
        return index.column() == SpreadColumn ? tip(index.row(), SpreadColumn)
                                              : text(index.row(), index.column());
    case Qt::FontRole:
        if (index.column() == MeanColumn || index.column() == GoalColumn || result.root.empty())
            return strongFont();
        return {};
    case Qt::ForegroundRole:
        if (index.column() == FailureColumn && result.failures > 0)
            return Theme::current().bad;
        if (index.column() == RootColumn || (index.column() == UnfinishedColumn && result.unfinished == 0)
            || (index.column() == FailureColumn && result.failures == 0))
            return Theme::current().dim;
        return {};
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignVCenter
                                | (isPolicyNumber(index.column()) ? Qt::AlignRight : Qt::AlignLeft));
    case SpreadRole:
        return QVariant::fromValue(m_spreads[static_cast<std::size_t>(index.row())]);
    case GroupRole:
        return index.row() == 0 || m_rows[static_cast<std::size_t>(index.row()) - 1].root != result.root;
    default:
        return {};
    }
}

QVariant PolicyTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter
                                | (isPolicyNumber(section) ? Qt::AlignRight : Qt::AlignLeft));
    if (role == Qt::ToolTipRole || role == Qt::AccessibleTextRole) {
        if (const run::MeasureNote *note = noteOf(section))
            return noteText(*note);
        switch (section) {
        case GoalColumn:
            return tr("Runs that reached the goal");
        case GainColumn:
            return tr("Geometric mean of the gains over the root, paired");
        case SuccessColumn:
            return tr("Successes");
        case FailureColumn:
            return tr("Failures");
        case UnfinishedColumn:
            return tr("Unfinished");
        case MeanColumn:
            return tr("Geometric mean of the successes' final speedups");
        default:
            return role == Qt::ToolTipRole ? QVariant() : headerData(section, orientation, Qt::DisplayRole);
        }
    }
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case RootColumn:
        return tr("Root");
    case PolicyColumn:
        return tr("Policy");
    case MeanColumn:
        return tr("Geo. mean");
    case GoalColumn:
        return tr("Goal");
    case GainColumn:
        return tr("Over root");
    case CorrectColumn:
        return tr("Correct");
    case Fast1Column:
        return QStringLiteral("fast_1");
    case Fast2Column:
        return QStringLiteral("fast_2");
    case AmsrColumn:
        return QStringLiteral("AMSR");
    case SpreadColumn:
        return tr("Final speedups");
    case SuccessColumn:
        return QStringLiteral("✓");
    case FailureColumn:
        return QStringLiteral("✗");
    case UnfinishedColumn:
        return QStringLiteral("○");
    case AgainstColumn:
        return m_rows.empty() ? tr("Relative")
                              : tr("vs %1").arg(QString::fromStdString(m_rows.front().policy));
    default:
        return tr("Cost");
    }
}

} // namespace klineage::ui
