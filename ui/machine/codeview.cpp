// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/machine/codeview.h"

#include "ui/machine/codedelegate.h"
#include "ui/machine/codemodel.h"
#include "ui/style/plainwidgets.h"

#include <QHeaderView>
#include <QScopedValueRollback>
#include <QScrollBar>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int leastInstruction = 230; // below it the reason to wait gives way; the tip has it
constexpr int stallCharacters = 17;

} // namespace

CodeView::CodeView(QWidget *parent)
    : QTableView(parent)
    , m_model(new CodeModel(this))
{
    setModel(m_model);
    setItemDelegate(new CodeDelegate(m_model, this));
    setSelectionBehavior(SelectRows);
    setSelectionMode(ExtendedSelection);
    setEditTriggers(NoEditTriggers);
    setTabKeyNavigation(false);
    setShowGrid(false);
    setWordWrap(false);
    setFrameShape(NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    verticalHeader()->hide();
    verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    verticalHeader()->setMinimumSectionSize(1);
    verticalHeader()->setDefaultSectionSize(codeRowHeight());
    makePlainHeader(horizontalHeader());
    horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setMinimumSectionSize(1);
}

void CodeView::setCode(MachineCodePtr code)
{
    const QScopedValueRollback<bool> quiet(m_isQuiet, true);
    const bool isSampled = code && code->samples > 0;
    m_model->setCode(std::move(code));
    setColumnHidden(CodeModel::SamplesColumn, !isSampled);
    scrollToTop();
    fitColumns();
}

int CodeView::markLine(int line)
{
    m_model->setMarkedLine(line);
    const auto rows = m_model->code() ? m_model->code()->rowsOf(line) : std::span<const int>();
    if (!rows.empty()) {
        const QScopedValueRollback<bool> quiet(m_isQuiet, true);
        setCurrentIndex(m_model->index(rows.front(), CodeModel::InstructionColumn));
        scrollTo(currentIndex(), PositionAtCenter);
    }
    return static_cast<int>(rows.size());
}

void CodeView::goToRow(int row)
{
    const bool isThere = currentIndex().row() == row;
    setCurrentIndex(m_model->index(row, CodeModel::InstructionColumn));
    scrollTo(currentIndex(), PositionAtCenter);
    if (isThere)
        announce(row);
}

QString CodeView::selectedText() const
{
    if (!m_model->code())
        return {};
    std::vector<int> rows;
    for (const QModelIndex &index : selectionModel()->selectedRows())
        rows.push_back(index.row());
    std::sort(rows.begin(), rows.end());
    return QString::fromStdString(rowsAsText(*m_model->code(), rows));
}

void CodeView::currentChanged(const QModelIndex &current, const QModelIndex &previous)
{
    QTableView::currentChanged(current, previous);
    if (!m_isQuiet)
        announce(current.row());
}

void CodeView::announce(int at)
{
    const CodeRow *row = m_model->row(at);
    if (!row || row->line <= 0)
        return;
    m_model->setMarkedLine(row->line);
    emit sourceLineChosen(row->line);
}

void CodeView::resizeEvent(QResizeEvent *event)
{
    QTableView::resizeEvent(event);
    fitColumns();
}

bool CodeView::event(QEvent *event)
{
    const bool handled = QTableView::event(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::ApplicationFontChange) {
        verticalHeader()->setDefaultSectionSize(codeRowHeight());
        fitColumns();
        QMetaObject::invokeMethod(this, &CodeView::fitColumns, Qt::QueuedConnection); // with its header
    }
    return handled;
}

/// Numbers are never cut; the instruction takes the rest.
void CodeView::fitColumns()
{
    const bool isSampled = m_model->code() && m_model->code()->samples > 0;
    const int line = lineColumnWidth(9999);
    const int samples = isSampled ? samplesColumnWidth() : 0;
    const int stall = fontMetrics().averageCharWidth() * stallCharacters;
    const int rest = viewport()->width() - line - samples;
    const bool showStall = isSampled && rest - stall >= leastInstruction;
    setColumnHidden(CodeModel::StallColumn, !showStall);
    setColumnWidth(CodeModel::LineColumn, line);
    if (isSampled)
        setColumnWidth(CodeModel::SamplesColumn, samples);
    if (showStall)
        setColumnWidth(CodeModel::StallColumn, stall);
    setColumnWidth(CodeModel::InstructionColumn, std::max(1, rest - (showStall ? stall : 0)));
}

} // namespace klineage::ui
