// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardpanel.h"

#include "ui/cards/cardeditor.h"
#include "ui/cards/cardhtml.h"
#include "ui/cards/cardreviewer.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/theme.h"

#include <QFontDatabase>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QShortcut>
#include <QStackedWidget>
#include <QTabBar>
#include <QTextBrowser>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

enum Tab { FieldsTab, CarrierTab, EvidenceTab, VerificationTab, HistoryTab };
constexpr int verdictSpacing = 2 * 10 + 2 * 8; // margins of the bar, and between the three verdicts

enum Page { TextPage, CarrierPage, EditorPage, EmptyPage };

QString lifeText(const skills::CardRecord &record)
{
    switch (record.life()) {
    case skills::Life::Hypothesis:
        return CardPanel::tr("◌ hypothesis");
    case skills::Life::Admitted:
        return CardPanel::tr("● admitted");
    case skills::Life::Retired:
        return CardPanel::tr("○ retired");
    }
    return {};
}

QString standingText(const skills::CardRecord &record)
{
    const skills::Review *review = record.standingReview();
    if (!review)
        return CardPanel::tr("Not reviewed");
    const QString author = QString::fromStdString(review->author);
    switch (review->verdict) {
    case skills::ReviewVerdict::Approve:
        return CardPanel::tr("✓ Approved by %1").arg(author);
    case skills::ReviewVerdict::Reject:
        return CardPanel::tr("✗ Rejected by %1").arg(author);
    case skills::ReviewVerdict::NeedsEvidence:
        return CardPanel::tr("? Needs evidence, says %1").arg(author);
    default:
        return CardPanel::tr("Not reviewed");
    }
}

} // namespace

CardPanel::CardPanel(WorkspaceModel *workspace, Selection *selection, CardReviewer *reviewer, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_reviewer(reviewer)
    , m_title(new QLabel)
    , m_life(new QLabel)
    , m_tabs(new QTabBar)
    , m_stack(new QStackedWidget)
    , m_page(new QTextBrowser)
    , m_carrier(new QPlainTextEdit)
    , m_editor(new CardEditor)
    , m_empty(new QLabel(tr("Select a card in the library, or a state whose step has one.")))
    , m_bar(new QWidget)
    , m_standing(new QLabel)
    , m_approve(new QPushButton)
    , m_reject(new QPushButton)
    , m_needs(new QPushButton)
    , m_undo(new QPushButton(tr("Undo")))
    , m_confirm(new QPushButton)
    , m_reasonRow(new QWidget)
    , m_reason(new QLineEdit)
{
    setFocusPolicy(Qt::StrongFocus);
    for (const QString &text :
         {tr("Fields"), tr("Carrier"), tr("Evidence"), tr("Verification"), tr("History")})
        m_tabs->addTab(text);
    m_tabs->setDrawBase(false);
    m_tabs->setExpanding(false);
    m_tabs->setUsesScrollButtons(false);
    m_tabs->setElideMode(Qt::ElideRight);
    m_tabs->setStyleSheet(QStringLiteral("QTabBar::tab { padding: 6px 7px 5px 7px; }"));
    m_tabs->setAccessibleName(tr("Card pages"));
    QFont bold = font();
    bold.setWeight(QFont::DemiBold);
    m_title->setFont(bold);
    m_title->setTextInteractionFlags(Qt::TextSelectableByMouse);

    m_page->setOpenLinks(false);
    m_page->setFrameShape(QFrame::NoFrame);
    m_page->setAccessibleName(tr("Card"));
    m_page->document()->setDocumentMargin(10);
    m_carrier->setReadOnly(true);
    m_carrier->setFrameShape(QFrame::NoFrame);
    m_carrier->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_carrier->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    m_carrier->setAccessibleName(tr("Carrier: the code-bearing hint"));
    m_empty->setWordWrap(true);
    m_empty->setAlignment(Qt::AlignCenter);
    m_empty->setMargin(16);
    m_empty->setEnabled(false);
    m_stack->insertWidget(TextPage, m_page);
    m_stack->insertWidget(CarrierPage, m_carrier);
    m_stack->insertWidget(EditorPage, m_editor);
    m_stack->insertWidget(EmptyPage, m_empty);

    auto *header = new QHBoxLayout;
    header->setContentsMargins(10, 6, 10, 2);
    header->addWidget(m_title, 1);
    header->addWidget(m_life);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(header);
    layout->addWidget(m_tabs);
    layout->addWidget(m_stack, 1);
    buildReasonRow();
    buildVerdictBar();
    layout->addWidget(m_reasonRow);
    layout->addWidget(m_bar);

    connect(m_tabs, &QTabBar::currentChanged, this, &CardPanel::showTab);
    connect(m_page, &QTextBrowser::anchorClicked, this,
            [this](const QUrl &url) { followLink(url.toString()); });
    connect(m_editor, &CardEditor::saveRequested, this,
            [this](const skills::Card &card) { m_reviewer->save(card, tr("edited in the workbench")); });
    connect(m_editor, &CardEditor::cancelled, this, &CardPanel::showTab);
    connect(m_reviewer, &CardReviewer::written, this, [this](const QString &card) {
        if (card == m_editor->cardName() && m_stack->currentIndex() == EditorPage) {
            m_editor->discardDraft();
            m_stack->setCurrentIndex(TextPage);
        }
        refresh();
    });
    connect(m_reviewer, &CardReviewer::failed, this,
            [this](const QString &, const QString &message) { m_standing->setText(message); });
    connect(m_reviewer, &CardReviewer::canUndoChanged, m_undo, &QPushButton::setEnabled);
    connect(m_workspace, &WorkspaceModel::loaded, this, &CardPanel::refresh);
    connect(m_workspace, &WorkspaceModel::cardChanged, this, &CardPanel::refresh);
    connect(m_selection, &Selection::cardChanged, this, [this] {
        m_reasonRow->hide();
        if (m_stack->currentIndex() == EditorPage)
            m_stack->setCurrentIndex(TextPage);
        refresh();
    });
    refresh();
}

void CardPanel::buildVerdictBar()
{
    m_bar->setStyleSheet(QStringLiteral("QPushButton { padding: 4px 9px; }"));
    m_approve->setObjectName(QStringLiteral("primaryButton"));
    m_approve->setToolTip(tr("Approve this revision (A)"));
    m_reject->setToolTip(tr("Reject with a reason (X)"));
    m_needs->setToolTip(tr("Say what evidence is missing"));
    nameVerdicts(true);
    auto *edit = new QPushButton(tr("Edit"));
    m_undo->setToolTip(
        tr("Take back the last verdict or edit of this session (Ctrl+Z). The history keeps both."));
    m_undo->setEnabled(false);
    m_standing->setEnabled(false);
    m_standing->setWordWrap(true);

    // Two rows, so that the panel can be narrow: what one does to the card stands beside how it stands.
    auto *standing = new QHBoxLayout;
    standing->addWidget(m_standing, 1);
    auto *verdicts = new QHBoxLayout;
    for (QPushButton *button : {m_approve, m_reject, m_needs, edit, m_undo}) {
        button->setAutoDefault(false);
        (button == edit || button == m_undo ? standing : verdicts)->addWidget(button);
    }
    verdicts->addStretch();
    auto *column = new QVBoxLayout(m_bar);
    column->setContentsMargins(10, 6, 10, 8);
    column->addLayout(standing);
    column->addLayout(verdicts);

    connect(m_approve, &QPushButton::clicked, this, &CardPanel::approve);
    connect(m_reject, &QPushButton::clicked, this, &CardPanel::reject);
    connect(m_needs, &QPushButton::clicked, this, &CardPanel::needEvidence);
    connect(edit, &QPushButton::clicked, this, &CardPanel::edit);
    connect(m_undo, &QPushButton::clicked, m_reviewer, &CardReviewer::undo);
}

void CardPanel::nameVerdicts(bool whole)
{
    m_approve->setText(whole ? tr("Approve  A") : tr("Approve"));
    m_reject->setText(whole ? tr("Reject…  X") : tr("Reject…"));
    m_needs->setText(whole ? tr("Needs evidence") : tr("Evidence…"));
}

/// No verdict is ever cut off: where they do not fit, their names are shorter.
void CardPanel::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    nameVerdicts(true);
    const int wanted = m_approve->sizeHint().width() + m_reject->sizeHint().width()
                       + m_needs->sizeHint().width() + verdictSpacing;
    if (wanted > width())
        nameVerdicts(false);
}

void CardPanel::buildReasonRow()
{
    auto *row = new QHBoxLayout(m_reasonRow);
    row->setContentsMargins(10, 4, 10, 0);
    row->addWidget(m_reason, 1);
    row->addWidget(m_confirm);
    m_reasonRow->hide();
    m_reason->setAccessibleName(tr("Reason"));
    connect(m_reason, &QLineEdit::returnPressed, this, &CardPanel::submitReason);
    connect(m_confirm, &QPushButton::clicked, this, &CardPanel::submitReason);
    connect(m_reason, &QLineEdit::textChanged, this,
            [this](const QString &text) { m_confirm->setEnabled(!text.trimmed().isEmpty()); });
    auto *escape = new QShortcut(QKeySequence(Qt::Key_Escape), m_reasonRow, nullptr, nullptr,
                                 Qt::WidgetWithChildrenShortcut);
    connect(escape, &QShortcut::activated, m_reasonRow, &QWidget::hide);
}

void CardPanel::approve()
{
    if (!m_selection->card().isEmpty())
        m_reviewer->review(m_selection->card(), skills::ReviewVerdict::Approve, {});
}

void CardPanel::reject()
{
    askReason(true);
}

void CardPanel::needEvidence()
{
    askReason(false);
}

void CardPanel::askReason(bool rejecting)
{
    if (!m_workspace->card(m_selection->card()))
        return;
    m_rejecting = rejecting;
    m_confirm->setText(rejecting ? tr("Reject") : tr("Ask"));
    m_confirm->setEnabled(false);
    m_reason->clear();
    m_reason->setPlaceholderText(rejecting ? tr("Why is it rejected? (Enter rejects, Esc cancels)")
                                           : tr("Which evidence is missing? (Enter asks, Esc cancels)"));
    m_reasonRow->show();
    m_reason->setFocus();
}

void CardPanel::submitReason()
{
    if (m_reason->text().trimmed().isEmpty())
        return;
    m_reviewer->review(m_selection->card(),
                       m_rejecting ? skills::ReviewVerdict::Reject : skills::ReviewVerdict::NeedsEvidence,
                       m_reason->text());
    m_reasonRow->hide();
    setFocus();
}

void CardPanel::edit()
{
    const skills::CardRecord *record = m_workspace->card(m_selection->card());
    if (!record)
        return;
    m_editor->open(*record);
    m_stack->setCurrentIndex(EditorPage);
    m_editor->text()->setFocus();
}

void CardPanel::refresh()
{
    const skills::CardRecord *record = m_workspace->card(m_selection->card());
    m_bar->setVisible(record);
    m_tabs->setVisible(record);
    m_title->setText(record ? QString::fromStdString(record->card.name) : QString());
    m_life->setText(record ? lifeText(*record) : QString());
    if (!record) {
        m_reasonRow->hide();
        m_stack->setCurrentIndex(EmptyPage);
        return;
    }
    const Theme &theme = Theme::current();
    QPalette life = palette();
    life.setColor(QPalette::WindowText, record->life() == skills::Life::Admitted ? theme.good : theme.warn);
    m_life->setPalette(life);
    QString standing = standingText(*record);
    if (CardEditor::hasDraft(m_title->text()))
        standing += tr(" · an unsaved draft is kept: press Edit");
    m_standing->setText(standing);
    if (m_stack->currentIndex() != EditorPage)
        showTab();
}

void CardPanel::showTab()
{
    const skills::CardRecord *record = m_workspace->card(m_selection->card());
    if (!record)
        return;
    switch (m_tabs->currentIndex()) {
    case CarrierTab:
        m_carrier->setPlainText(QString::fromStdString(record->carrier));
        m_stack->setCurrentIndex(CarrierPage);
        return;
    case EvidenceTab:
        m_page->setHtml(evidenceHtml(*record));
        break;
    case VerificationTab:
        m_page->setHtml(verificationHtml(*record));
        break;
    case HistoryTab:
        m_page->setHtml(historyHtml(*record));
        break;
    default:
        m_page->setHtml(fieldsHtml(*record));
    }
    m_stack->setCurrentIndex(TextPage);
}

void CardPanel::followLink(const QString &link)
{
    const QString citation = link.section(QLatin1Char(':'), 1);
    if (citation.startsWith(QLatin1String("trial:"))) {
        const std::string trial = citation.section(QLatin1Char(':'), 1).toStdString();
        for (const lineage::Lineage &lineage : m_workspace->workspace().lineages) {
            for (const lineage::State &state : lineage.states) {
                if (state.trial == trial)
                    return m_selection->setLineage(QString::fromStdString(lineage.key()),
                                                   QString::fromStdString(state.id));
            }
            if (lineage.findTrial(trial))
                return m_selection->setLineage(QString::fromStdString(lineage.key()), citation);
        }
        return;
    }
    const QString key = citation.section(QLatin1Char('/'), 0, 1);
    if (m_workspace->lineage(key))
        m_selection->setLineage(key, citation.section(QLatin1Char('/'), 2));
}

} // namespace klineage::ui
