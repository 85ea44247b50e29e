// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/compare/comparemodel.h"

#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <algorithm>
#include <map>

namespace klineage::ui {

namespace {

const QString groupKey = QStringLiteral("group:");

QString csvCell(QString text)
{
    const bool isPlain = std::none_of(
        text.begin(), text.end(), [](QChar c) { return c == u'"' || c == u',' || c == u'\n' || c == u'\r'; });
    return isPlain ? text : u'"' + text.replace(u'"', QLatin1String("\"\"")) + u'"';
}

} // namespace

void CompareModel::setRuns(std::vector<ComparedRun> runs)
{
    beginResetModel();
    m_runs = std::move(runs);
    m_all = compareColumns(m_runs);
    rebuild();
    endResetModel();
}

void CompareModel::setView(const CompareView &view)
{
    if (view == m_view)
        return;
    beginResetModel();
    m_view = view;
    rebuild();
    endResetModel();
}

void CompareModel::rebuild()
{
    choose();
    chooseColumns();
    arrange();
}

/// The runs that the filter takes, sorted.
void CompareModel::choose()
{
    const CompareFilter filter(m_view.filter, m_all, &m_filterProblem);
    m_accepted.clear();
    for (const ComparedRun &run : m_runs) {
        if (filter.accepts(run, m_all))
            m_accepted.push_back(&run);
    }
    const CompareColumn *by = findColumn(m_all, m_view.sort);
    if (by)
        std::stable_sort(m_accepted.begin(), m_accepted.end(), [&](const auto *a, const auto *b) {
            return isBefore(by->value(*a), by->value(*b));
        });
}

/// What is missing comes last, whatever the order.
bool CompareModel::isBefore(const QVariant &a, const QVariant &b) const
{
    if (!a.isValid() || !b.isValid())
        return a.isValid() && !b.isValid();
    const int order = compareValues(a, b);
    return m_view.descending ? order > 0 : order < 0;
}

void CompareModel::chooseColumns()
{
    m_shown.clear();
    m_references.clear();
    for (const QString &id : m_view.columns) {
        const CompareColumn *column = findColumn(m_all, id);
        if (!column || std::find(m_shown.begin(), m_shown.end(), column) != m_shown.end())
            continue;
        const bool differs = std::any_of(m_accepted.begin(), m_accepted.end(), [&](const ComparedRun *run) {
            return column->value(*run) != column->value(*m_accepted.front());
        });
        if (m_view.onlyDifferent && !differs && column->id != QLatin1String("run"))
            continue;
        m_shown.push_back(column);
        m_references.push_back(commonReference(*column));
    }
    // A table without columns cannot be brought back by a click on it.
    if (m_shown.empty() && !m_all.empty()) {
        m_shown.push_back(m_all.data());
        m_references.emplace_back();
    }
}

QString CompareModel::commonReference(const CompareColumn &column) const
{
    QString common;
    if (!column.figure)
        return common;
    for (const ComparedRun *run : m_accepted) {
        const SpeedupFigure &figure = run->*column.figure;
        if (figure.value <= 0)
            continue;
        if (!common.isEmpty() && common != figure.against)
            return {};
        common = figure.against;
    }
    return common;
}

void CompareModel::arrange()
{
    m_groups.clear();
    m_rows.clear();
    const CompareColumn *by = findColumn(m_all, m_view.group);
    if (!by) {
        for (const ComparedRun *run : m_accepted)
            m_rows.push_back({nullptr, run});
        return;
    }
    std::map<QString, std::size_t> places;
    for (const ComparedRun *run : m_accepted) {
        const QString value = shownValue(*by, *run);
        const auto [place, isNew] = places.emplace(value, m_groups.size());
        if (isNew)
            m_groups.push_back({value, {}});
        m_groups[place->second].runs.push_back(run);
    }
    // Groups stand as the sort says: by the sum of its column, or, where it is text, by their first run.
    const CompareColumn *sorted = findColumn(m_all, m_view.sort);
    if (sorted && sorted->isNumber())
        std::stable_sort(m_groups.begin(), m_groups.end(), [&](const Group &a, const Group &b) {
            return isBefore(sumOf(*sorted, a.runs).value, sumOf(*sorted, b.runs).value);
        });
    for (const Group &group : m_groups) {
        m_rows.push_back({&group, nullptr});
        if (m_view.folded.contains(group.value))
            continue;
        for (const ComparedRun *run : group.runs)
            m_rows.push_back({nullptr, run});
    }
}

int CompareModel::columnOf(const QString &id) const
{
    const auto found = std::find_if(m_shown.begin(), m_shown.end(),
                                    [&](const CompareColumn *column) { return column->id == id; });
    return found == m_shown.end() ? -1 : static_cast<int>(found - m_shown.begin());
}

int CompareModel::rowOf(const QString &key) const
{
    for (int row = 0; row < rowCount(); ++row) {
        if (index(row, 0).data(KeyRole).toString() == key)
            return row;
    }
    return -1;
}

const ComparedRun *CompareModel::runAt(int row) const
{
    return row < 0 || row >= rowCount() ? nullptr : m_rows[static_cast<std::size_t>(row)].run;
}

double CompareModel::shownDollars() const
{
    double dollars = 0;
    for (const ComparedRun *run : m_accepted)
        dollars += run->run->spentDollars;
    return dollars;
}

QString CompareModel::csv() const
{
    std::vector<const CompareColumn *> columns = m_shown;
    const CompareColumn *group = findColumn(m_all, m_view.group);
    if (group && std::find(columns.begin(), columns.end(), group) == columns.end())
        columns.insert(columns.begin(), group);
    QString csv;
    QStringList cells;
    const auto endLine = [&] {
        csv += cells.join(u',') + u'\n';
        cells.clear();
    };
    for (const CompareColumn *column : columns) {
        cells << column->id;
        if (column->figure)
            cells << column->id + QLatin1String("_against") << column->id + QLatin1String("_paired");
    }
    endLine();
    std::vector<const ComparedRun *> runs;
    if (!group)
        runs = m_accepted;
    for (const Group &one : m_groups)
        runs.insert(runs.end(), one.runs.begin(), one.runs.end());
    for (const ComparedRun *run : runs) {
        for (const CompareColumn *column : columns) {
            cells << csvCell(exactValue(column->value(*run)));
            if (!column->figure)
                continue;
            const SpeedupFigure &figure = run->*column->figure;
            const bool isThere = figure.value > 0;
            cells << csvCell(isThere ? figure.against : QString())
                  << QLatin1String(!isThere        ? ""
                                   : figure.paired ? "yes"
                                                   : "no");
        }
        endLine();
    }
    return csv;
}

int CompareModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}

int CompareModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_shown.size());
}

QVariant CompareModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || !checkIndex(index, CheckIndexOption::ParentIsInvalid))
        return {};
    const Row &row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return static_cast<int>(Qt::AlignVCenter
                                | (column(index.column()).isNumber() ? Qt::AlignRight : Qt::AlignLeft));
    if (role == GroupRole)
        return row.group != nullptr;
    return row.group ? groupData(row, index.column(), role) : runData(*row.run, index.column(), role);
}

QVariant CompareModel::groupData(const Row &row, int column, int role) const
{
    const Group &group = *row.group;
    const int runs = static_cast<int>(group.runs.size());
    switch (role) {
    case Qt::DisplayRole:
    case Qt::EditRole: {
        if (column == 0)
            return QStringLiteral("%1 %2 · %3")
                .arg(m_view.folded.contains(group.value) ? QStringLiteral("▸") : QStringLiteral("▾"),
                     group.value, runs == 1 ? tr("1 run") : tr("%1 runs").arg(runs));
        const CompareColumn &shown = this->column(column);
        const CompareSum sum = sumOf(shown, group.runs);
        return role == Qt::EditRole && sum.value.isValid() ? sum.value : shownSum(shown, sum, runs);
    }
    case Qt::ToolTipRole:
        return tr("Space folds the group and opens it again.\n%1").arg(this->column(column).tip);
    case Qt::FontRole:
        return strongFont();
    case Qt::BackgroundRole:
        return Theme::current().panel;
    case KeyRole:
        return groupKey + group.value;
    default:
        return {};
    }
}

QVariant CompareModel::runData(const ComparedRun &run, int column, int role) const
{
    const CompareColumn &shown = this->column(column);
    const SpeedupFigure *figure = shown.figure ? &(run.*shown.figure) : nullptr;
    switch (role) {
    case Qt::DisplayRole: {
        QString text = shownValue(shown, run);
        if (shown.id == QLatin1String("state"))
            text.prepend(runStateStyle(*run.run).glyph + QLatin1Char(' '));
        if (shown.id == QLatin1String("final_speedup") && run.run->summary.audited)
            text += QStringLiteral(" ◇");
        // Where the rows compare with different things, each says with what.
        if (figure && figure->value > 0 && m_references[static_cast<std::size_t>(column)].isEmpty())
            text += QLatin1Char(' ') + figure->against;
        return text;
    }
    case Qt::EditRole:
        return shown.value(run);
    case Qt::ToolTipRole:
        if (!figure || figure->value <= 0)
            return shown.kind == CompareColumn::Kind::Text ? shownValue(shown, run) : shown.tip;
        if (!figure->paired)
            return tr("%1 against %2, not paired").arg(exactValue(figure->value), figure->against);
        return tr("%1 against %2, paired (95 %: %3 to %4)")
            .arg(exactValue(figure->value), figure->against, exactValue(figure->low),
                 exactValue(figure->high));
    case Qt::ForegroundRole:
        if (shown.id == QLatin1String("state"))
            return toneColor(runStateStyle(*run.run).tone);
        return {};
    case KeyRole:
        return run.key();
    default:
        return {};
    }
}

QVariant CompareModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount())
        return {};
    const CompareColumn &shown = column(section);
    switch (role) {
    case Qt::TextAlignmentRole:
        return static_cast<int>(Qt::AlignVCenter | (shown.isNumber() ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::EditRole:
        return shown.id;
    case Qt::ToolTipRole:
        return tr("%1\nThe filter calls it %2.").arg(shown.tip, shown.id);
    case Qt::DisplayRole:
        break;
    default:
        return {};
    }
    const QString &reference = m_references[static_cast<std::size_t>(section)];
    // "Gain over root" says it already.
    if (!shown.figure || shown.figure == &ComparedRun::gain)
        return shown.title;
    return reference.isEmpty() ? tr("%1 vs own reference").arg(shown.title)
                               : tr("%1 vs %2").arg(shown.title, reference);
}

void CompareModel::sort(int column, Qt::SortOrder order)
{
    if (column < 0 || column >= columnCount())
        return;
    CompareView view = m_view;
    view.sort = this->column(column).id;
    view.descending = order == Qt::DescendingOrder;
    if (view == m_view)
        return;
    setView(view);
    emit viewChanged();
}

} // namespace klineage::ui
