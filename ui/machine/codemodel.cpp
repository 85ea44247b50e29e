// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/codemodel.h"

#include "core/trial/analysis/linesamples.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"

#include <QStringList>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int longestTip = 2000;

QString percentOf(std::int64_t part, std::int64_t whole)
{
    const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    return percent < 0.05 ? QStringLiteral("< 0.1 %") : formatFixed(percent, 1) + QStringLiteral(" %");
}

/// What a file has of a cell: plain numbers, and names that do not change.
QVariant plainCell(const CodeRow &row, int column)
{
    switch (column) {
    case CodeModel::LineColumn:
        return row.line > 0 ? QVariant(row.line) : QVariant(QString());
    case CodeModel::SamplesColumn:
        return row.kind == CodeRow::Kind::Instruction ? QVariant(qlonglong(row.samples))
                                                      : QVariant(QString());
    case CodeModel::StallColumn:
        return QString::fromStdString(largestStall(row).first);
    default:
        return QString::fromStdString(row.kind == CodeRow::Kind::Kernel ? ".kernel " + row.text : row.text);
    }
}

} // namespace

void CodeModel::setCode(MachineCodePtr code)
{
    beginResetModel();
    m_code = std::move(code);
    m_markedLine = 0;
    endResetModel();
}

const CodeRow *CodeModel::row(int at) const
{
    return m_code && at >= 0 && at < static_cast<int>(m_code->rows.size())
               ? &m_code->rows[static_cast<std::size_t>(at)]
               : nullptr;
}

void CodeModel::setMarkedLine(int line)
{
    if (std::exchange(m_markedLine, line) != line && rowCount() > 0)
        emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1), {Qt::BackgroundRole});
}

bool CodeModel::isMarked(int at) const
{
    const CodeRow *marked = row(at);
    return marked && m_markedLine > 0 && marked->line == m_markedLine;
}

int CodeModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() || !m_code ? 0 : static_cast<int>(m_code->rows.size());
}

int CodeModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(ColumnCount);
}

QVariant CodeModel::shown(const CodeRow &row, int column) const
{
    switch (column) {
    case LineColumn:
        return row.line > 0 ? QVariant(QString::number(row.line)) : QVariant();
    case SamplesColumn:
        return row.samples > 0 ? QVariant(percentOf(row.samples, m_code->samples)) : QVariant();
    case StallColumn: {
        const auto [reason, samples] = largestStall(row);
        return samples > 0 ? QVariant(QString::fromStdString(gate::stallInBrief(reason))) : QVariant();
    }
    default:
        return QString::fromStdString(row.text);
    }
}

/// All reasons with their samples: the column has room for one.
QString CodeModel::tip(const CodeRow &row) const
{
    QStringList lines{QString::fromStdString(row.text).left(longestTip)};
    if (row.kind != CodeRow::Kind::Instruction)
        return lines.first();
    lines << (row.line > 0 ? tr("from line %1 of the source").arg(row.line)
                           : tr("from no line of the source: a header, or the compiler"));
    if (row.samples > 0)
        lines << tr("%1 of %2 samples (%3) found a warp here")
                     .arg(formatCount(row.samples), formatCount(m_code->samples),
                          percentOf(row.samples, m_code->samples));
    std::vector<std::pair<std::string, std::int64_t>> stalls(row.stalls.begin(), row.stalls.end());
    std::sort(stalls.begin(), stalls.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
    for (const auto &[reason, samples] : stalls)
        lines << tr("%1 waiting for: %2")
                     .arg(formatCount(samples), QString::fromStdString(gate::stallInBrief(reason)));
    return lines.join(QLatin1Char('\n'));
}

QVariant CodeModel::data(const QModelIndex &index, int role) const
{
    const CodeRow *at = row(index.row());
    if (!at || !index.isValid())
        return {};
    switch (role) {
    case Qt::DisplayRole:
        return shown(*at, index.column());
    case Qt::EditRole:
        return plainCell(*at, index.column());
    case Qt::ToolTipRole:
        return tip(*at);
    case Qt::TextAlignmentRole:
        return index.column() < StallColumn ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                                            : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    case Qt::FontRole:
        return index.column() == InstructionColumn ? QVariant(codeFont()) : QVariant();
    default:
        return {};
    }
}

QVariant CodeModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount)
        return {};
    const QString shownNames[] = {tr("Line"), tr("Samples"), tr("Mostly waits for"), tr("Instruction")};
    const char *plainNames[] = {"line", "samples", "stall", "instruction"};
    if (role == Qt::DisplayRole)
        return shownNames[section];
    if (role == Qt::EditRole)
        return QString::fromLatin1(plainNames[section]);
    if (role == Qt::TextAlignmentRole)
        return section < StallColumn ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                                     : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    return {};
}

} // namespace klineage::ui
