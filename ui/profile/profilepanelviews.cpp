// SPDX-License-Identifier: GPL-3.0-or-later
// The views of ProfilePanel, and those that say why a step changed the time.
#include "ui/profile/profilepanel.h"

#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/roofline/rooflineplot.h"
#include "ui/profile/numberedpicture.h"
#include "ui/profile/numbersmodel.h"
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

namespace klineage::ui {

namespace {

constexpr int patienceMs = 100;

NumbersModel::Cell numberCell(double value, const QString &unit)
{
    return {formatQuantity(value, unit), value};
}

/// The points of the path and the ceilings above them.
std::vector<NumbersModel::Row> rooflineRows(const gate::RooflinePath &path)
{
    std::vector<NumbersModel::Row> rows;
    for (const gate::RooflinePoint &point : path.points) {
        const QString id = QString::fromStdString(point.id);
        rows.push_back({{id, id},
                        numberCell(point.intensity, {}),
                        numberCell(point.perSecond, QStringLiteral("FLOP/s")),
                        numberCell(point.latencyNs, QStringLiteral("ns"))});
    }
    for (const gate::RooflineCeiling &ceiling : path.ceilings) {
        const QString name = ProfilePanel::tr("ceiling: %1").arg(QString::fromStdString(ceiling.name));
        rows.push_back({{name, name},
                        {},
                        numberCell(ceiling.perSecond,
                                   ceiling.isBandwidth ? QStringLiteral("B/s") : QStringLiteral("FLOP/s")),
                        {}});
    }
    return rows;
}

} // namespace

void ProfilePanel::makeViews()
{
    const std::pair<QWidget *, QString> views[] = {
        {m_table, tr("Metrics")},     {m_explanation, tr("Explain")},
        {m_launches, tr("Launch")},   {m_rooflineNumbers, tr("Roofline")},
        {m_findings, tr("Findings")}, {m_sampleNumbers, tr("Samples")},
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
    const auto question = why::askStep(lineage, row, m_selection->baseline().toStdString(),
                                       m_workspace->workload(QString::fromStdString(lineage.workload)));
    if (!question)
        return;
    const QString key =
        QStringLiteral("%1|%2|%3|%4|%5")
            .arg(m_selection->lineageKey(), m_selection->row(), m_selection->baseline(),
                 question->before ? QString::fromStdString(question->before->trial.id) : QString(),
                 QString::fromStdString(question->after.trial.id));
    m_askedKey = key;
    if (m_answeredKey == key)
        return;
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

void ProfilePanel::showRoofline(const lineage::Lineage &lineage)
{
    const std::string row = m_selection->row().toStdString();
    const why::Chain chain = why::chainTo(lineage, row);
    RooflineView view;
    view.path = gate::rooflinePath(chain.states, row);
    view.selected = m_selection->row();
    // States that have no place are left out of the path too.
    const auto isOnPath = [&](const gate::RooflinePoint &point) {
        const auto end = chain.states.begin() + static_cast<std::ptrdiff_t>(chain.length);
        return std::any_of(chain.states.begin(), end,
                           [&](const gate::ChainedTrial &state) { return state.id == point.id; });
    };
    view.length =
        static_cast<std::size_t>(std::count_if(view.path.points.begin(), view.path.points.end(), isOnPath));
    m_roofline->setView(view);
    m_rooflineNumbers->numbers()->setNumbers({{tr("State"), QStringLiteral("state")},
                                              {tr("FLOP/B"), QStringLiteral("flop_per_byte")},
                                              {tr("Rate"), QStringLiteral("per_second")},
                                              {tr("Latency"), QStringLiteral("latency_ns")}},
                                             rooflineRows(view.path));
    m_rooflineNumbers->fitColumns();
}

/// Round by round; a subject that took part in fewer rounds has empty cells.
void ProfilePanel::showSamples(const gate::Trial *trial)
{
    m_samples->setTrial(trial);
    std::vector<NumbersModel::Column> columns{{tr("Round"), QStringLiteral("round")}};
    std::size_t rounds = 0;
    for (const gate::Samples &samples : trial ? trial->samples : std::vector<gate::Samples>()) {
        const QString subject = QString::fromStdString(samples.subject);
        columns.push_back({subject, subject + QStringLiteral("_ns")});
        rounds = std::max(rounds, samples.ns.size());
    }
    std::vector<NumbersModel::Row> rows(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
        rows[i].push_back(numberCell(static_cast<double>(i + 1), {}));
        for (const gate::Samples &samples : trial->samples)
            rows[i].push_back(i < samples.ns.size() ? numberCell(samples.ns[i], QStringLiteral("ns"))
                                                    : NumbersModel::Cell());
    }
    m_sampleNumbers->numbers()->setNumbers(std::move(columns), std::move(rows));
    m_sampleNumbers->fitColumns();
}

} // namespace klineage::ui
