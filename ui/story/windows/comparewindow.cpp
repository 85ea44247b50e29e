// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/windows/comparewindow.h"

#include "core/lineage/table.h"
#include "core/workspace/workspace.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/workspacemodel.h"
#include "ui/profile/profilemodel.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/theme.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSplitter>
#include <QTableView>

#include <utility>

namespace klineage::ui {

namespace {

bool isTimedRow(const gate::Trial *trial)
{
    return trial && trial->verdict.status == gate::VerdictStatus::Correct && trial->latencyNs.value > 0;
}

QString nameOf(const RowName &name, const lineage::RowRef &row)
{
    const QString latency = isTimedRow(row.trial)
                                ? QStringLiteral("  ·  ") + formatLatency(row.trial->latencyNs.value)
                                : QString();
    return QStringLiteral("%1/%2  %3%4")
        .arg(name.lineage, name.row, QString::fromStdString(row.title), latency);
}

} // namespace

CompareWindow::CompareWindow(WorkspaceModel *workspace)
    : m_workspace(workspace)
    , m_leftName(new QLabel)
    , m_rightName(new QLabel)
    , m_note(new QLabel)
    , m_view(new DiffView)
    , m_profile(new ProfileModel(this))
    , m_table(makePlainTable(m_profile, tr("Profiles of both")))
{
    setWindowTitle(tr("KLineage: two states"));
    setAttribute(Qt::WA_QuitOnClose, false);
    resize(1400, 860);
    setAutoFillBackground(true);
    for (QLabel *name : {m_leftName, m_rightName}) {
        name->setFont(strongFont());
        name->setTextFormat(Qt::PlainText);
        name->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    }
    m_note->setTextFormat(Qt::PlainText);
    m_note->setWordWrap(true);
    m_note->setForegroundRole(QPalette::PlaceholderText);
    m_table->setColumnHidden(ProfileModel::BarColumn, true);
    auto *names = new QHBoxLayout;
    names->setContentsMargins(12, 8, 12, 4);
    names->addWidget(m_leftName, 1);
    names->addWidget(m_rightName, 1);
    auto *figures = new QWidget;
    auto *column = new QVBoxLayout(figures);
    column->setContentsMargins(0, 0, 0, 0);
    m_note->setMargin(8);
    column->addWidget(m_note);
    column->addWidget(m_table, 1);
    auto *splitter = new QSplitter;
    splitter->addWidget(m_view);
    splitter->addWidget(figures);
    splitter->setStretchFactor(0, 1);
    splitter->setSizes({960, 440});
    splitter->setChildrenCollapsible(false);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(names);
    layout->addWidget(splitter, 1);
    connect(&m_loader, &DiffLoader::loaded, this, [this](const QString &key, const DocumentPtr &document) {
        if (key == m_wanted)
            showDocument(document);
    });
}

QString CompareWindow::compare(const RowName &left, const RowName &right)
{
    const lineage::Lineage *leftLineage = m_workspace->lineage(left.lineage);
    const lineage::Lineage *rightLineage = m_workspace->lineage(right.lineage);
    const auto leftRow = leftLineage ? lineage::findRow(*leftLineage, left.row.toStdString()) : std::nullopt;
    const auto rightRow =
        rightLineage ? lineage::findRow(*rightLineage, right.row.toStdString()) : std::nullopt;
    if (!leftRow || !rightRow) {
        const RowName &missing = leftRow ? right : left;
        return tr("Cannot compare %1/%2: the workspace has no such row.").arg(missing.lineage, missing.row);
    }
    m_left = left;
    m_right = right;
    m_leftName->setText(nameOf(left, *leftRow));
    m_rightName->setText(nameOf(right, *rightRow));
    DiffSpec spec;
    spec.left = sideSpec(*leftRow, DiffTab::Source);
    spec.right = sideSpec(*rightRow, DiffTab::Source);
    m_wanted = spec.key();
    if (const DocumentPtr document = m_loader.load(spec))
        showDocument(document);
    m_profile->setSides(
        leftRow->trial, left.lineage.section(QLatin1Char('/'), 0, 0) + QLatin1Char(' ') + left.row,
        rightRow->trial, right.lineage.section(QLatin1Char('/'), 0, 0) + QLatin1Char(' ') + right.row);
    m_table->resizeColumnsToContents();
    QString note = tr("Two trials, not paired.");
    if (isTimedRow(leftRow->trial) && isTimedRow(rightRow->trial)) {
        const std::string &a = leftRow->trial->environment.device;
        const std::string &b = rightRow->trial->environment.device;
        const gate::Interval ratio =
            lineage::ratioOfMedians(leftRow->trial->latencyNs, rightRow->trial->latencyNs);
        if (a != b)
            note = tr("Two devices, %1 and %2: their times do not compare.")
                       .arg(QString::fromStdString(a), QString::fromStdString(b));
        else if (leftLineage->workload != rightLineage->workload)
            note =
                tr("Two workloads, %1 and %2: their times are of different work. Two trials on %3, not paired.")
                    .arg(QString::fromStdString(leftLineage->workload),
                         QString::fromStdString(rightLineage->workload), QString::fromStdString(a));
        else
            note = tr("%1 the speed of the left one on %2: medians of two trials, not paired.")
                       .arg(formatSpeedup(ratio.value), QString::fromStdString(a));
    }
    m_note->setText(note);
    setAccessibleName(
        tr("%1/%2 and %3/%4 side by side").arg(left.lineage, left.row, right.lineage, right.row));
    show();
    raise();
    activateWindow();
    m_view->setFocus();
    return {};
}

void CompareWindow::showDocument(const DocumentPtr &document)
{
    m_view->setDocument(document, false);
}

void CompareWindow::nextChange()
{
    m_view->goToNextHunk();
}

void CompareWindow::previousChange()
{
    m_view->goToPreviousHunk();
}

void CompareWindow::swap()
{
    (void)compare(RowName(m_right), RowName(m_left));
}

QString CompareWindow::note() const
{
    return m_note->text();
}

} // namespace klineage::ui
