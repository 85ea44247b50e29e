// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardpanel.h"

#include "ui/cards/applicationcounter.h"
#include "ui/cards/cardeditor.h"
#include "ui/cards/cardhtml.h"
#include "ui/cards/cardmarkup.h"
#include "ui/cards/cardreviewer.h"
#include "ui/cards/commentshtml.h"
#include "ui/cards/relationgraph.h"
#include "ui/cards/revisioncompare.h"
#include "ui/cards/verdictbar.h"
#include "ui/diff/view/diffview.h"
#include "ui/highlight/highlightededit.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/fonts.h"
#include "ui/style/status.h"

#include <QAction>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QStackedWidget>
#include <QTabBar>
#include <QTextBrowser>
#include <QVBoxLayout>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

enum Tab { FieldsTab, CarrierTab, EvidenceTab, VerificationTab, RelationsTab, HistoryTab };
enum Page { TextPage, CarrierPage, EditorPage, NoCardPage, ComparePage };
constexpr int hopsShown = 2;

/// What a card is now: that it was rejected counts more than what its roundtrips came to.
StatusStyle statusOf(const skills::CardRecord &record)
{
    const skills::Review *review = record.standingReview();
    const bool isRejected = review && review->verdict == skills::ReviewVerdict::Reject;
    return isRejected && !record.card.retired ? statusStyle(review->verdict) : statusStyle(record.life());
}

/// The cards that rest on a row, as links; empty: none does.
QString citingCards(const Workspace &workspace, const QString &citation)
{
    QStringList links;
    for (const skills::CardRecord &record : workspace.cards) {
        const auto &evidence = record.card.evidence;
        if (std::find(evidence.begin(), evidence.end(), citation.toStdString()) != evidence.end())
            links << markup::cardLink(QString::fromStdString(record.card.name));
    }
    return links.join(QStringLiteral(", "));
}

} // namespace

CardPanel::CardPanel(WorkspaceModel *workspace, Selection *selection, CardReviewer *reviewer, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_reviewer(reviewer)
    , m_applications(new ApplicationCounter(workspace, this))
    , m_title(new QLabel)
    , m_life(new QLabel)
    , m_tabs(new QTabBar)
    , m_stack(new QStackedWidget)
    , m_page(new QTextBrowser)
    , m_around(new RelationGraph)
    , m_admit(new QPushButton(tr("Admit…")))
    , m_compare(new RevisionCompare)
    , m_carrier(new HighlightedEdit)
    , m_editor(new CardEditor(workspace))
    , m_noCard(new QLabel)
    , m_lift(new QPushButton(tr("Lift a card from this step…")))
    , m_bar(new VerdictBar)
{
    buildCommands();
    for (const QString &text :
         {tr("Fields"), tr("Carrier"), tr("Evidence"), tr("Verification"), tr("Relations"), tr("History")})
        m_tabs->addTab(text);
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setUsesScrollButtons(true); // six names do not fit a narrow panel
    m_tabs->setElideMode(Qt::ElideNone);
    m_tabs->setFont(captionFont());
    m_tabs->setObjectName(QStringLiteral("cardPages"));
    m_tabs->setAccessibleName(tr("Card pages"));
    QFont bold = font();
    bold.setWeight(QFont::DemiBold);
    m_title->setFont(bold);
    m_title->setWordWrap(true); // at its hyphens
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);

    m_page->setOpenLinks(false);
    m_page->setFrameShape(QFrame::NoFrame);
    m_page->setAccessibleName(tr("Card"));
    m_page->document()->setDocumentMargin(10);
    m_carrier->setReadOnly(true);
    m_carrier->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_carrier->setAccessibleName(tr("Carrier: the code-bearing hint"));
    m_stack->insertWidget(TextPage, makeTextPage());
    m_stack->insertWidget(CarrierPage, m_carrier);
    m_stack->insertWidget(EditorPage, m_editor);
    m_stack->insertWidget(NoCardPage, makeNoCardPage());
    m_stack->insertWidget(ComparePage, m_compare);

    auto *header = new QHBoxLayout;
    header->setContentsMargins(10, 6, 10, 2);
    header->addWidget(m_title, 1);
    m_life->setObjectName(QStringLiteral("cardStatus"));
    header->addWidget(m_life);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(header);
    layout->addWidget(m_tabs);
    // Where there is little height the text gives way, not the verdicts.
    m_stack->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Ignored);
    m_stack->setMinimumHeight(3 * fontMetrics().height());
    layout->addWidget(m_stack, 1);
    layout->addWidget(m_bar);

    connect(m_tabs, &QTabBar::currentChanged, this, &CardPanel::showTab);
    connect(m_page, &QTextBrowser::anchorClicked, this,
            [this](const QUrl &url) { followLink(url.toString()); });
    connect(m_editor, &CardEditor::saveRequested, this,
            [this](const skills::Card &card) { m_reviewer->save(card, tr("edited in the workbench")); });
    connect(m_compare, &RevisionCompare::closed, this, [this] {
        m_tabs->setCurrentIndex(HistoryTab);
        showTab();
        m_page->setFocus();
    });
    connect(m_applications, &ApplicationCounter::changed, this, [this] {
        if (m_tabs->currentIndex() == VerificationTab && m_stack->currentIndex() == TextPage)
            showTab();
    });
    connect(m_around, &RelationGraph::cardChosen, this, &CardPanel::cardRequested);
    connect(m_editor, &CardEditor::cancelled, this, &CardPanel::showTab);
    connect(m_reviewer, &CardReviewer::written, this, [this](const QString &card) {
        if (card == m_editor->cardName() && m_stack->currentIndex() == EditorPage) {
            m_editor->discardDraft();
            showPage(TextPage);
        }
        refresh();
    });
    connect(m_reviewer, &CardReviewer::failed, this,
            [this](const QString &, const QString &problem) { m_bar->showProblem(problem); });
    connect(m_workspace, &WorkspaceModel::loaded, this, [this] {
        if (m_editor->leaveIfElsewhere() && m_stack->currentIndex() == EditorPage)
            showPage(TextPage);
        refresh();
    });
    connect(m_workspace, &WorkspaceModel::cardChanged, this, [this](const QString &card) {
        if (card == m_selection->card() || !m_workspace->card(m_selection->card()))
            refresh();
    });
    connect(m_selection, &Selection::markedCardsChanged, this, &CardPanel::refresh);
    connect(m_selection, &Selection::cardChanged, this, [this] {
        m_bar->stopAsking();
        if (m_stack->currentIndex() == EditorPage || m_stack->currentIndex() == ComparePage)
            showPage(TextPage);
        refresh();
    });
    connect(m_bar, &VerdictBar::askingEnded, this, &CardPanel::refresh);
    const auto refreshNoCard = [this] {
        if (!m_workspace->card(m_selection->card()))
            refresh();
    };
    const auto refreshComments = [this, refreshNoCard] {
        if (m_tabs->currentIndex() == HistoryTab && m_stack->currentIndex() == TextPage)
            showTab();
        refreshNoCard();
    };
    connect(m_selection, &Selection::rowChanged, this, refreshComments);
    connect(m_selection, &Selection::baselineChanged, this, refreshComments);
    connect(m_workspace, &WorkspaceModel::lineageChanged, this, [this, refreshComments](const QString &key) {
        if (key == m_selection->lineageKey())
            refreshComments();
    });
    connect(m_reviewer, &CardReviewer::undoingComment, m_selection, &Selection::setLineage);
    connect(m_selection, &Selection::lineageChanged, this, refreshNoCard);
    refresh();
}

/// The page's text; above it the graph of its relations, below it the way to admit the card.
QWidget *CardPanel::makeTextPage()
{
    auto *page = new QWidget;
    auto *around = new QScrollArea;
    around->setObjectName(QStringLiteral("relations"));
    around->setWidget(m_around);
    around->setWidgetResizable(true);
    around->setFrameShape(QFrame::NoFrame);
    around->setFocusPolicy(Qt::NoFocus);
    m_aroundArea = around;
    m_admit->setObjectName(QStringLiteral("admitButton"));
    m_admit->setAutoDefault(false);
    m_admit->setToolTip(
        tr("Try the card on a kernel that had no part in it: asks for target, author and budget"));
    connect(m_admit, &QPushButton::clicked, this, &CardPanel::admitRequested);
    auto *column = new QVBoxLayout(page);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(around, 1);
    column->addWidget(m_page, 1);
    m_admitRow = new QWidget;
    auto *row = new QHBoxLayout(m_admitRow);
    row->setContentsMargins(10, 4, 10, 8);
    row->addWidget(m_admit);
    row->addStretch();
    column->addWidget(m_admitRow);
    return page;
}

QWidget *CardPanel::makeNoCardPage()
{
    auto *page = new QWidget;
    m_noCard->setObjectName(QStringLiteral("noCard"));
    m_noCard->setWordWrap(true);
    m_noCard->setTextFormat(Qt::RichText);
    m_noCard->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    connect(m_noCard, &QLabel::linkActivated, this, [this](const QString &target) {
        if (target.startsWith(QLatin1String("card:")))
            m_selection->setCard(target.section(QLatin1Char(':'), 1));
        else
            answerComment(target);
    });
    m_lift->setAutoDefault(false);
    connect(m_lift, &QPushButton::clicked, this, &CardPanel::liftRequested);
    auto *column = new QVBoxLayout(page);
    column->setContentsMargins(16, 12, 16, 16);
    column->setSpacing(12);
    column->addWidget(m_noCard);
    column->addWidget(m_lift, 0, Qt::AlignLeft);
    column->addStretch();
    return page;
}

void CardPanel::edit()
{
    const skills::CardRecord *record = m_workspace->card(m_selection->card());
    if (!record)
        return;
    m_editor->open(*record);
    showPage(EditorPage);
    m_editor->text()->setFocus();
}

bool CardPanel::isEditing() const
{
    return m_stack->currentIndex() == EditorPage;
}

void CardPanel::refresh()
{
    const skills::CardRecord *record = m_workspace->card(m_selection->card());
    m_bar->setVisible(record);
    m_tabs->setVisible(record);
    for (QAction *action : std::as_const(m_verdictCommands))
        action->setEnabled(record);
    if (!record) {
        showNoCard();
        return;
    }
    m_title->setText(QString::fromStdString(record->card.name));
    const StatusStyle status = statusOf(*record);
    m_life->setText(QStringLiteral("%1 %2").arg(status.glyph, status.word));
    QPalette life = palette();
    life.setColor(QPalette::WindowText, toneColor(status.tone));
    m_life->setPalette(life);
    if (const QStringList marked = m_selection->markedCards(); marked.isEmpty())
        m_bar->setCard(*record, m_editor->hasDraft(m_title->text()));
    else
        m_bar->setCards(marked);
    m_bar->setReviewer(CardReviewer::isAuthorSet() ? CardReviewer::author() : QString(), m_setAuthor);
    if (m_stack->currentIndex() != EditorPage && m_stack->currentIndex() != ComparePage)
        showTab();
}

void CardPanel::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && m_workspace->isLoaded())
        refresh(); // colours are in the texts
}

/// Never the card of another step: what there is instead, and what one can do about it.
void CardPanel::showNoCard()
{
    const QString key = m_selection->lineageKey();
    const QString row = m_selection->row();
    const lineage::Lineage *lineage = m_workspace->lineage(key);
    const lineage::Transition *step = lineage ? lineage->transitionTo(row.toStdString()) : nullptr;
    QString title = tr("No card");
    QString text = tr("Choose a card in the library, or a step of a lineage that has one.");
    if (step) {
        title = tr("No card for this step");
        text = tr("No card was lifted from %1 → %2 (%3, %4).")
                   .arg(QString::fromStdString(step->from), row, QString::fromStdString(step->category),
                        QString::fromStdString(step->locus))
                   .toHtmlEscaped();
    } else if (lineage && lineage->findState(row.toStdString())) {
        title = tr("No card for this step");
        text = tr("%1 is where the lineage begins: no step leads to it.").arg(row).toHtmlEscaped();
    } else if (lineage && !row.isEmpty()) {
        title = tr("No card for this attempt");
        text =
            tr("Cards are lifted from the steps of a lineage; what was only tried is what their risks cite.");
    }
    if (const QString citing =
            lineage ? citingCards(m_workspace->workspace(), key + QLatin1Char('/') + row) : QString();
        !citing.isEmpty())
        text += QStringLiteral("<br><br>") + tr("Cited by %1.").arg(citing);
    m_title->setText(title);
    m_life->clear();
    m_noCard->setText(text + stepComments());
    m_lift->setVisible(step);
    showPage(NoCardPage);
}

void CardPanel::showPage(int page)
{
    m_stack->setCurrentIndex(page);
    setFocusProxy(page == TextPage      ? static_cast<QWidget *>(m_page)
                  : page == CarrierPage ? static_cast<QWidget *>(m_carrier)
                  : page == EditorPage  ? static_cast<QWidget *>(m_editor->text())
                  : page == ComparePage ? static_cast<QWidget *>(m_compare)
                                        : m_lift);
}

/// A scroll bar that goes with the old text and comes back with the new one would have the text laid out three times.
void CardPanel::setText(const QString &html)
{
    if (m_page->verticalScrollBar()->isVisible())
        m_page->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOn);
    m_page->setHtml(html);
    m_page->setVerticalScrollBarPolicy(Qt::ScrollBarAsNeeded);
}

void CardPanel::showTab()
{
    const skills::CardRecord *record = m_workspace->card(m_selection->card());
    if (!record)
        return;
    m_aroundArea->setVisible(m_tabs->currentIndex() == RelationsTab);
    m_admitRow->setVisible(m_tabs->currentIndex() == VerificationTab && record->verifications.empty()
                           && !record->card.retired);
    switch (m_tabs->currentIndex()) {
    case CarrierTab:
        m_carrier->setPlainText(QString::fromStdString(record->carrier));
        m_carrier->setLanguage(languageOfFile(QString::fromStdString(record->card.carrierFile)));
        showPage(CarrierPage);
        return;
    case EvidenceTab:
        setText(evidenceHtml(*record, m_workspace->workspace()));
        break;
    case VerificationTab:
        m_applications->look();
        setText(verificationHtml(*record, m_workspace->workspace(), m_applications->record()));
        break;
    case RelationsTab:
        showRelations(*record);
        break;
    case HistoryTab:
        setText(stepComments() + historyHtml(*record));
        break;
    default:
        setText(fieldsHtml(*record));
    }
    showPage(TextPage);
}

bool CardPanel::isUpToDate() const
{
    return !m_applications->isCounting();
}

void CardPanel::showRelations(const skills::CardRecord &record)
{
    const std::vector<skills::CardRecord> &library = m_workspace->workspace().cards;
    m_around->setSurroundings(skills::surroundingsOf(library, record.card.name, hopsShown));
    m_aroundArea->setVisible(m_around->rows().size() > 1);
    m_aroundArea->setMaximumHeight(m_around->sizeHint().height()); // else half of the page
    setText(relationsHtml(record, m_workspace->workspace()));
}

void CardPanel::compareRevisions()
{
    const skills::CardRecord *record = m_workspace->card(m_selection->card());
    if (!record)
        return;
    m_compare->setRecord(*record);
    m_tabs->setCurrentIndex(HistoryTab);
    showPage(ComparePage);
    m_compare->diff()->setFocus();
}

void CardPanel::showFields()
{
    if (!isEditing())
        m_tabs->setCurrentIndex(FieldsTab);
}

void CardPanel::followLink(const QString &link)
{
    if (link.startsWith(QLatin1String("card:"))) {
        emit cardRequested(link.section(QLatin1Char(':'), 1));
        return;
    }
    if (link.startsWith(QLatin1String("compare:"))) {
        compareRevisions();
        return;
    }
    if (!link.startsWith(QLatin1String("cite:"))) {
        answerComment(link);
        return;
    }
    const QString citation = link.section(QLatin1Char(':'), 1);
    if (citation.startsWith(QLatin1String("trial:"))) {
        const std::string trial = citation.section(QLatin1Char(':'), 1).toStdString();
        for (const lineage::Lineage &lineage : m_workspace->workspace().lineages) {
            for (const lineage::State &state : lineage.states) {
                if (state.trial == trial)
                    return m_selection->lookUp(QString::fromStdString(lineage.key()),
                                               QString::fromStdString(state.id));
            }
            if (lineage.findTrial(trial))
                return m_selection->lookUp(QString::fromStdString(lineage.key()), citation);
        }
        return;
    }
    const QString key = citation.section(QLatin1Char('/'), 0, 1);
    if (m_workspace->lineage(key))
        m_selection->lookUp(key, citation.section(QLatin1Char('/'), 2));
}

} // namespace klineage::ui
