// SPDX-License-Identifier: GPL-3.0-or-later
// The views of ProfilePanel, and those that say why a step changed the time.
#include "ui/profile/profilepanel.h"

#include "core/lineage/table.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/roofline/rooflineplot.h"
#include "ui/profile/profilemodel.h"
#include "ui/profile/samplesplot.h"
#include "ui/profile/why/explainhtml.h"
#include "ui/profile/why/explainpage.h"
#include "ui/profile/why/launchpage.h"
#include "ui/style/format.h"

#include <QAction>
#include <QStackedWidget>
#include <QTabBar>
#include <QTableView>
#include <QTextBrowser>
#include <QTimer>
#include <QUrl>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int patienceMs = 100;

} // namespace

void ProfilePanel::makeViews()
{
    const std::pair<QWidget *, QString> views[] = {
        {m_table, tr("Metrics")},     {m_explanation, tr("Explain")}, {m_launches, tr("Launch")},
        {m_roofline, tr("Roofline")}, {m_findings, tr("Findings")},   {m_samples, tr("Samples")},
    };
    for (const auto &[view, title] : views) {
        m_stack->addWidget(view);
        m_tabs->addTab(title);
    }
    addCommand(QStringLiteral("profile.explain"), tr("Explain this step"), QKeySequence(Qt::ALT | Qt::Key_E),
               ExplainPlace);
    addCommand(QStringLiteral("profile.launch"), tr("Launch plan in numbers"),
               QKeySequence(Qt::ALT | Qt::Key_L), LaunchPlace);
    addCommand(QStringLiteral("profile.roofline"), tr("Roofline of the lineage"),
               QKeySequence(Qt::ALT | Qt::Key_R), RooflinePlace);
    m_patience->setSingleShot(true);
    connect(m_patience, &QTimer::timeout, this,
            [this] { m_explanation->showMessage(tr("Comparing both trials and their sources…")); });
    connect(m_explanation, &ExplainPage::metricWanted, this, &ProfilePanel::showMetric);
    connect(m_explanation, &ExplainPage::sourceLineWanted, this, &ProfilePanel::sourceLineWanted);
    connect(m_findings, &QTextBrowser::anchorClicked, this, [this](const QUrl &url) {
        const auto link = explainLink(url.toString());
        if (link && link->metric.isEmpty())
            emit sourceLineWanted(link->side, link->line);
        else if (link)
            showMetric(link->metric);
    });
    connect(m_roofline, &RooflinePlot::hovered, m_selection, &Selection::setHovered);
    connect(m_roofline, &RooflinePlot::chosen, m_selection, &Selection::setRow);
    connect(m_selection, &Selection::hoveredChanged, m_roofline, &RooflinePlot::setHovered);
}

void ProfilePanel::addCommand(const QString &id, const QString &text, const QKeySequence &key, Page page)
{
    auto *action = new QAction(text, this);
    action->setObjectName(id);
    action->setShortcut(key);
    connect(action, &QAction::triggered, this, [this, page] {
        m_tabs->setCurrentIndex(page);
        emit wanted();
    });
    m_tabs->setTabToolTip(page, QStringLiteral("%1 (%2)").arg(text, key.toString(QKeySequence::NativeText)));
    m_commands << action;
}

bool ProfilePanel::showMetric(const QString &name)
{
    m_tabs->setCurrentIndex(TablePage); // which reads the rows again
    const auto &rows = m_model->rows();
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const ProfileRow &row) { return row.name == name; });
    if (found == rows.end())
        return false;
    const QModelIndex index =
        m_model->index(static_cast<int>(found - rows.begin()), ProfileModel::MetricColumn);
    m_table->setFocus();
    m_table->selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect
                                                          | QItemSelectionModel::Rows);
    m_table->scrollTo(index, QAbstractItemView::PositionAtCenter);
    return true;
}

/// In the background, and only once for a step: sources may be long.
void ProfilePanel::ask(const lineage::Lineage &lineage)
{
    const std::string row = m_selection->row().toStdString();
    auto question = why::askStep(lineage, row, m_selection->baseline().toStdString(),
                                 m_workspace->workload(QString::fromStdString(lineage.workload)));
    if (!question)
        return;
    const QString key =
        QStringLiteral("%1|%2|%3|%4|%5")
            .arg(m_selection->lineageKey(), m_selection->row(), m_selection->baseline(),
                 question->before ? QString::fromStdString(question->before->trial.id) : QString(),
                 QString::fromStdString(question->after.trial.id));
    const bool isAnother = std::exchange(m_askedKey, key) != key;
    if (m_answeredKey == key) {
        if (isAnother) { // back from a step whose answer is on its way, and would be taken for this one's
            m_asking.cancel();
            takeAnswer(m_answer);
        }
        return;
    }
    m_patience->start(patienceMs);
    m_asking.start(interactivePool(),
                   [this, key, question = *question](const std::stop_token &stop, const JobSlot::Post &post) {
                       auto answer = std::make_shared<why::Answer>(why::answer(question, stop));
                       post([this, key, answer] {
                           m_answeredKey = key;
                           m_answer = std::move(*answer);
                           takeAnswer(m_answer);
                       });
                   });
}

void ProfilePanel::takeAnswer(const why::Answer &answer)
{
    m_patience->stop();
    m_explanation->setExplanation(answer.explanation);
    m_launches->setSides(answer.before, m_leftName, answer.after, m_rightName);
}

} // namespace klineage::ui
