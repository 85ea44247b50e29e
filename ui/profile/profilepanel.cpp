// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/profilepanel.h"

#include "core/lineage/step.h"
#include "core/lineage/table.h"
#include "core/trial/analysis/analysis.h"
#include "core/trial/analysis/explain/rooflinepath.h"
#include "ui/models/devicename.h"
#include "ui/models/disturbancetext.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/roofline/rooflineview.h"
#include "ui/profile/changedelegate.h"
#include "ui/profile/findingshtml.h"
#include "ui/profile/profilemodel.h"
#include "ui/profile/samplesplot.h"
#include "ui/profile/why/explainpage.h"
#include "ui/profile/why/launchpage.h"
#include "ui/style/chip.h"
#include "ui/style/fonts.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/status.h"

#include <QAction>
#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QStackedWidget>
#include <QTabBar>
#include <QTableView>
#include <QTextBrowser>
#include <QTimer>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int headerMargin = 8;
constexpr int leastBar = 48;
constexpr int leastName = 84;   // of a chip's neighbour
constexpr int headlineRows = 3; // latency and the two rates of it, which stand first
constexpr int leastCaption = 150;

} // namespace

QString ProfilePanel::sideName(const lineage::RowRef &row)
{
    return row.id.starts_with("trial:") ? tr("this trial") : QString::fromStdString(row.id);
}

ProfilePanel::ProfilePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_model(new ProfileModel(this))
    , m_header(new QBoxLayout(QBoxLayout::LeftToRight))
    , m_tabs(new QTabBar)
    , m_bound(new ChipLabel)
    , m_caption(new QLabel)
    , m_stack(new QStackedWidget)
    , m_table(new QTableView)
    , m_change(new ChangeTextDelegate(this))
    , m_samples(new SamplesPlot)
    , m_findings(new QTextBrowser)
    , m_explanation(new ExplainPage)
    , m_launches(new LaunchPage)
    , m_roofline(new RooflinePlot)
    , m_patience(new QTimer(this))
    , m_failure(new QLabel)
    , m_message(makeMessageLabel())
{
    m_tabs->setObjectName(QStringLiteral("profileViews"));
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setFont(captionFont());
    m_tabs->setFocusPolicy(Qt::StrongFocus); // who clicks a view exports that one
    m_tabs->setAccessibleName(tr("Profile views"));
    m_caption->setEnabled(false);
    // A long device name must not push the tabs away.
    m_caption->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_caption->setAlignment(Qt::AlignRight | Qt::AlignVCenter);

    m_table->setModel(m_model);
    m_table->setItemDelegateForColumn(ProfileModel::ChangeColumn, m_change);
    m_table->setItemDelegateForColumn(ProfileModel::BarColumn, new ChangeBarDelegate(this));
    m_table->setAccessibleName(tr("Profile difference of the selected step"));
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setShowGrid(false);
    m_table->setTextElideMode(Qt::ElideMiddle);
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->verticalHeader()->hide();
    makePlainHeader(m_table->horizontalHeader());
    m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    m_table->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);

    // The change is what one looks for, so it stays next to the name when the panel is narrow.
    m_table->horizontalHeader()->moveSection(ProfileModel::ChangeColumn, ProfileModel::LeftColumn);

    m_findings->setAccessibleName(tr("What bounds the selected kernel, and what the profiling tools found"));
    m_findings->setFrameShape(QFrame::NoFrame);
    m_findings->setOpenLinks(false);
    m_findings->document()->setDocumentMargin(10);

    makeViews();
    m_stack->insertWidget(MessagePage, m_message);

    m_tabs->setElideMode(Qt::ElideNone);
    m_header->setContentsMargins(headerMargin, 0, headerMargin, 0);
    m_header->setSpacing(headerMargin);
    m_header->addWidget(m_tabs);
    auto *about = new QHBoxLayout;
    about->addWidget(m_bound);
    about->addWidget(m_caption, 1);
    m_header->addLayout(about, 1);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_failure->setObjectName(QStringLiteral("failure"));
    m_failure->setWordWrap(true);
    m_failure->setTextFormat(Qt::PlainText);
    m_failure->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_failure->setContentsMargins(headerMargin + 2, 4, headerMargin, 6);
    layout->addLayout(m_header);
    layout->addWidget(m_failure);
    // What went wrong is never cut off: the figures below it give way.
    m_stack->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored);
    layout->addWidget(m_stack, 1);

    setFocusProxy(m_table);
    connect(m_tabs, &QTabBar::currentChanged, this, &ProfilePanel::refresh);
    connect(m_stack, &QStackedWidget::currentChanged, this,
            [this](int page) { setFocusProxy(page == MessagePage ? nullptr : m_stack->widget(page)); });
    connect(m_workspace, &WorkspaceModel::loaded, this, &ProfilePanel::refresh);
    connect(m_workspace, &WorkspaceModel::lineageChanged, this, &ProfilePanel::refresh);
    connect(m_selection, &Selection::lineageChanged, this, &ProfilePanel::refresh);
    connect(m_selection, &Selection::rowChanged, this, &ProfilePanel::refresh);
    connect(m_selection, &Selection::baselineChanged, this, &ProfilePanel::refresh);
    refresh();
}

/// The tabs stay whole; what they are about stands below them where there is no room for it beside them. What bounds the kernel is left
/// out where that is not enough, the findings say it too; then parts of the words from the end, which the tool tip has.
void ProfilePanel::makeRoom()
{
    const int whole = width() - 2 * headerMargin;
    const int beside = whole - m_tabs->sizeHint().width() - headerMargin;
    const bool isBeside = m_captionText.isEmpty() || beside >= leastCaption;
    m_header->setDirection(isBeside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
    const int room = isBeside ? beside : whole;
    const int chip = m_bound->sizeHint().width() + headerMargin;
    const bool showBound = !m_bound->chip().text.isEmpty() && chip + leastName <= room;
    m_bound->setVisible(showBound);
    const int rest = room - (showBound ? chip : 0);
    m_caption->setAlignment((isBeside ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    m_caption->setVisible(!m_captionText.isEmpty());
    // What comes first says most: a device, and what a trial's figures rest on, go before a word is cut.
    QString caption = m_captionText;
    const QString between = QStringLiteral(" · ");
    while (m_caption->fontMetrics().horizontalAdvance(caption) > rest && caption.contains(between))
        caption.truncate(caption.lastIndexOf(between));
    m_caption->setText(
        rest < leastName ? QString() : m_caption->fontMetrics().elidedText(caption, Qt::ElideMiddle, rest));
    m_caption->setToolTip(m_captionText);
    fitColumns();
}

/// Numbers are never cut off, nor are the names of metrics that most trials have: bars go below the changes, then the left side's numbers
/// give way, then the right side's, which the tool tips have. Longer names are elided in their middle.
void ProfilePanel::fitColumns()
{
    QHeaderView *header = m_table->horizontalHeader();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
    const QAbstractItemView *view = m_table; // where the hint is public
    // A hidden column is measured as nothing.
    for (const int column :
         {static_cast<int>(ProfileModel::LeftColumn), static_cast<int>(ProfileModel::RightColumn),
          static_cast<int>(ProfileModel::BarColumn)})
        m_table->setColumnHidden(column, false);
    const auto wanted = [&](int column) {
        return std::max(view->sizeHintForColumn(column), header->sectionSizeHint(column));
    };
    const int names = wanted(ProfileModel::MetricColumn);
    const int left = wanted(ProfileModel::LeftColumn);
    const int change = wanted(ProfileModel::ChangeColumn);
    const int right = wanted(ProfileModel::RightColumn);
    int room = m_table->viewport()->width() - change - right;
    int least = 0;
    for (int row = 0; row < std::min(headlineRows, m_model->rowCount()); ++row)
        least = std::max(least, m_table->fontMetrics().horizontalAdvance(
                                    m_model->index(row, ProfileModel::MetricColumn).data().toString()));
    least = std::min(names, least + headerMargin);
    const bool showRight = room >= least || !m_model->hasChanges();
    if (!showRight)
        room += right;
    const bool showLeft = showRight && room >= left + least;
    const bool showBars = showLeft && room >= least + left + leastBar;
    m_table->setColumnHidden(ProfileModel::LeftColumn, !showLeft);
    m_table->setColumnHidden(ProfileModel::RightColumn, !showRight);
    m_model->setHidden(!showLeft, !showRight);
    m_table->setColumnHidden(ProfileModel::BarColumn, !showBars);
    m_change->setBarBelow(!showBars);
    m_table->setColumnWidth(ProfileModel::ChangeColumn, change);
    m_table->setColumnWidth(ProfileModel::RightColumn, right);
    m_table->setColumnWidth(ProfileModel::LeftColumn, left);
    // Names are elided before bars are lost; beyond what names need, all room is the bars'.
    const int rest = room - (showLeft ? left : 0);
    const int bars = !showBars ? 0 : std::max(leastBar, rest - names);
    m_table->setColumnWidth(ProfileModel::MetricColumn, rest - bars);
    if (showBars)
        m_table->setColumnWidth(ProfileModel::BarColumn, bars);
}

void ProfilePanel::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    makeRoom();
}

void ProfilePanel::showMessage(const QString &text)
{
    m_failure->hide();
    m_model->setSides(nullptr, {}, nullptr, {});
    m_samples->setTrial(nullptr);
    m_findings->clear();
    m_bound->setChip({});
    m_captionText.clear();
    m_askedKey = m_answeredKey = QString();
    m_asking.cancel();
    makeRoom();
    m_message->setText(text);
    m_stack->setCurrentIndex(MessagePage);
}

/// Of the pictures and texts only what is seen: a held key steps through many rows. Another tab asks again.
void ProfilePanel::fillView(const lineage::Lineage &lineage, const gate::Trial &trial)
{
    const gate::Analysis analysis = gate::analyse(trial);
    m_bound->setChip(chipOf(analysis.classification.bound));
    switch (m_tabs->currentIndex()) {
    case RooflinePlace:
        m_roofline->setView(rooflineOf(lineage, m_selection->row()));
        break;
    case FindingsPage:
        m_findings->setHtml(findingsHtml(analysis, gate::bothIntensities(trial)));
        break;
    case SamplesPage:
        m_samples->setTrial(&trial);
        break;
    default:
        break;
    }
}

/// What gave a failed candidate away, in words and elements, above everything else.
void ProfilePanel::showFailure(const gate::Verdict &verdict)
{
    const bool failed = verdict.status != gate::VerdictStatus::Correct;
    m_failure->setVisible(failed);
    if (!failed)
        return;
    QStringList lines{QStringLiteral("%1 %2: %3")
                          .arg(statusStyle(verdict.status).glyph, statusStyle(verdict.status).word,
                               QString::fromStdString(verdict.message))};
    if (!verdict.hint.empty())
        lines << QString::fromStdString(verdict.hint);
    QStringList evidence;
    for (const gate::Evidence &item : verdict.evidence)
        evidence << QStringLiteral("%1: %2").arg(
            QString::fromStdString(item.name).replace(QLatin1Char('_'), QLatin1Char(' ')),
            QString::fromStdString(item.value));
    if (!evidence.isEmpty())
        lines << evidence.join(QStringLiteral(" · "));
    QPalette colors = palette();
    colors.setColor(QPalette::WindowText, toneColor(statusStyle(verdict.status).tone));
    m_failure->setPalette(colors);
    m_failure->setText(lines.join(QLatin1Char('\n')));
}

void ProfilePanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    // Once the tables and their headers, whose texts are measured, have the new font too.
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        QMetaObject::invokeMethod(this, &ProfilePanel::makeRoom, Qt::QueuedConnection);
    if (event->type() != QEvent::PaletteChange)
        return;
    if (!m_answeredKey.isEmpty() && isUpToDate())
        takeAnswer(m_answer); // colours are in the texts
    refresh();
}

void ProfilePanel::refresh()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    if (!lineage)
        return showMessage(tr("Select a state of a lineage to see what its step changed."));
    const auto step =
        lineage::findStep(*lineage, m_selection->row().toStdString(), m_selection->baseline().toStdString());
    if (!step)
        return showMessage(tr("Select a state of the lineage to see what its step changed."));
    if (!step->right.trial)
        return showMessage(
            tr("%1 has no recorded trial. Open it in the editor and press Ctrl+Enter to gate it.")
                .arg(sideName(step->right)));

    const gate::Trial *recorded = step->left ? step->left->trial : nullptr;
    const std::string other = lineage::elsewhere(recorded, step->right.trial->environment.device);
    // Of a parent on another device only what was timed beside this trial, and so on this one's device.
    const gate::Trial *left = other.empty() ? recorded : nullptr;
    const gate::Comparison *paired = step->left && step->left->id == step->right.parent
                                         ? step->right.trial->comparison("parent")
                                         : nullptr;
    m_leftName = step->left ? sideName(*step->left) : QStringLiteral("–");
    m_rightName = sideName(step->right);
    m_model->setSides(left, m_leftName, step->right.trial, m_rightName, paired);
    fillView(*lineage, *step->right.trial);
    showFailure(step->right.trial->verdict);
    const QString leftDevice = QString::fromStdString(other);
    QString device = QString::fromStdString(step->right.trial->environment.device);
    const QString leftName = distinctName(leftDevice, device);
    if (!other.empty())
        device = distinctName(device, leftDevice);
    if (step->right.trial->trust != gate::Trust::Unsaid)
        device += QStringLiteral(" · ") + QString::fromLatin1(gate::toString(step->right.trial->trust));
    m_captionText =
        !step->left ? device
        : !other.empty() && paired
            ? tr("against %1, paired · what else is recorded of %1 is of %2 and not compared · %3")
                  .arg(m_leftName, leftName, device)
        : !other.empty()
            ? tr("%1 was recorded on %2 and is not compared · %3").arg(m_leftName, leftName, device)
        : paired ? tr("against %1, paired · %2").arg(m_leftName, device)
                 : tr("against %1, not paired · %2").arg(m_leftName, device);
    QStringList said;
    for (const gate::Disturbance &disturbance : gate::disturbancesOf(*step->right.trial))
        said << disturbanceInBrief(disturbance);
    m_captionText = (said << m_captionText).join(QStringLiteral(" · "));
    makeRoom();
    ask(*lineage);
    if (m_tabs->currentIndex() == SamplesPage && step->right.trial->samples.empty())
        m_message->setText(tr("This trial was not timed, so it has no samples: %1")
                               .arg(QString::fromStdString(step->right.trial->verdict.message)));
    const bool empty = m_tabs->currentIndex() == SamplesPage && step->right.trial->samples.empty();
    m_stack->setCurrentIndex(empty ? static_cast<int>(MessagePage) : m_tabs->currentIndex());
}

} // namespace klineage::ui
