// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/library/facetbar.h"

#include "ui/models/libraryfilter.h"
#include "ui/style/flowlayout.h"
#include "ui/style/fonts.h"

#include <QKeyEvent>
#include <QLabel>
#include <QMenu>
#include <QToolButton>

#include <algorithm>

namespace klineage::ui {

namespace {

struct FacetText {
    QString name;
    QString what;
};

FacetText textOf(Facet facet)
{
    switch (facet) {
    case Facet::Life:
        return {FacetBar::tr("Life"), FacetBar::tr("hypothesis, admitted, retired; imported, rejected")};
    case Facet::Lint:
        return {FacetBar::tr("Lint"), FacetBar::tr("error, warning, clean")};
    case Facet::Verdict:
        return {FacetBar::tr("Verdict"), FacetBar::tr("none, approved, rejected, evidence")};
    case Facet::Viewed:
        return {FacetBar::tr("Viewed"), FacetBar::tr("yes, no")};
    case Facet::Age:
        return {FacetBar::tr("Age"),
                FacetBar::tr("today, week, month, older: of the newest event in its logs")};
    case Facet::Platform:
        return {FacetBar::tr("Platform"), FacetBar::tr("claimed or verified: sm90, pocl")};
    case Facet::Needs:
        return {FacetBar::tr("Needs"), FacetBar::tr("of the device: tma, warps, cpu")};
    case Facet::Family:
        return {FacetBar::tr("Family"), FacetBar::tr("of the operator: attention, reduction")};
    case Facet::By:
        return {FacetBar::tr("By"), FacetBar::tr("who stands in the history: lift, probe, a person")};
    }
    return {};
}

} // namespace

FacetBar::FacetBar(const LibraryFilter *filter, QWidget *parent)
    : QWidget(parent)
    , m_filter(filter)
    , m_menu(new QMenu(this))
    , m_count(new QLabel)
{
    setProperty("notExported", true);
    auto *row = new FlowLayout(1, this);
    row->setContentsMargins(6, 0, 6, 2);
    for (const Facet facet : allFacets) {
        auto *button = new QToolButton;
        const FacetText text = textOf(facet);
        button->setObjectName(QStringLiteral("facet-") + QLatin1String(toString(facet)));
        button->setAutoRaise(true);
        button->setFont(captionFont());
        button->setFocusPolicy(Qt::TabFocus);
        button->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
        button->setToolTip(
            tr("%1: %2 (in the filter, %3:…)").arg(text.name, text.what, QLatin1String(toString(facet))));
        button->installEventFilter(this);
        connect(button, &QToolButton::clicked, this, [this, facet] { openMenu(facet); });
        m_buttons[static_cast<std::size_t>(facet)] = button;
        row->addWidget(button);
    }
    m_count->setObjectName(QStringLiteral("cardCount"));
    m_count->setFont(captionFont());
    m_count->setForegroundRole(QPalette::PlaceholderText);
    m_count->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_count->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_count->setAccessibleName(tr("How many cards are shown"));
    row->addWidget(m_count);
    showQuery();
}

void FacetBar::showQuery()
{
    for (const Facet facet : allFacets) {
        const std::vector<std::string> &wanted = m_filter->query().of(facet);
        const QString name = textOf(facet).name;
        QStringList words;
        for (const std::string &word : wanted)
            words << QString::fromStdString(word);
        QToolButton *shown = button(facet);
        const QString whole = words.isEmpty() ? tr("%1: any").arg(name)
                                              : tr("%1: %2").arg(name, words.join(QStringLiteral(", ")));
        QFont font = captionFont();
        font.setBold(!words.isEmpty());
        if (whole == shown->accessibleName() && font.pointSizeF() == shown->font().pointSizeF())
            continue; // a font that is set again is looked up in the style sheet again, with each key
        shown->setAccessibleName(whole);
        shown->setText(words.isEmpty() ? tr("%1 ▾").arg(name) : tr("✓ %1 ▾").arg(name));
        shown->setFont(font);
    }
    const LibraryFilter::Cards cards = m_filter->cards();
    m_count->setText(cards.shown == cards.all ? tr("%1 cards").arg(cards.all)
                                              : tr("%1 of %2").arg(cards.shown).arg(cards.all));
}

void FacetBar::focusFirst()
{
    m_buttons.front()->setFocus(Qt::ShortcutFocusReason);
}

void FacetBar::openMenu(Facet facet)
{
    m_menu->clear();
    for (const auto &[word, count] : m_filter->counts(facet)) {
        const QString text = QString::fromStdString(word);
        QAction *choice = m_menu->addAction(QStringLiteral("%1\t%2").arg(text).arg(count));
        const std::vector<std::string> &wanted = m_filter->query().of(facet);
        choice->setCheckable(true);
        choice->setChecked(std::find(wanted.begin(), wanted.end(), word) != wanted.end());
        connect(choice, &QAction::triggered, this, [this, facet, text] { emit toggled(facet, text); });
    }
    if (m_menu->isEmpty())
        m_menu->addAction(tr("No card says anything of it"))->setEnabled(false);
    QToolButton *at = button(facet);
    m_menu->popup(at->mapToGlobal(QPoint(0, at->height())));
    for (QAction *choice : m_menu->actions()) {
        if (choice->isEnabled()) {
            m_menu->setActiveAction(choice);
            break;
        }
    }
}

bool FacetBar::eventFilter(QObject *watched, QEvent *event)
{
    const auto at = std::find(m_buttons.begin(), m_buttons.end(), watched);
    if (at == m_buttons.end() || event->type() != QEvent::KeyPress)
        return QWidget::eventFilter(watched, event);
    const auto place = at - m_buttons.begin();
    const auto last = static_cast<std::ptrdiff_t>(m_buttons.size()) - 1;
    switch (static_cast<QKeyEvent *>(event)->key()) {
    case Qt::Key_Left:
    case Qt::Key_Right: {
        const int by = static_cast<QKeyEvent *>(event)->key() == Qt::Key_Right ? 1 : -1;
        m_buttons[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(place + by, 0, last))]->setFocus(
            Qt::TabFocusReason);
        return true;
    }
    case Qt::Key_Down:
    case Qt::Key_Return:
    case Qt::Key_Enter:
        openMenu(allFacets[static_cast<std::size_t>(place)]);
        return true;
    default:
        return QWidget::eventFilter(watched, event);
    }
}

QString FacetBar::help()
{
    QString rows;
    for (const Facet facet : allFacets)
        rows += QStringLiteral("<tr><td><code>%1:</code>&nbsp;&nbsp;</td><td>%2</td></tr>")
                    .arg(QLatin1String(toString(facet)), textOf(facet).what.toHtmlEscaped());
    return tr("Words find what has them in name, category, place or scope. Facets find cards; beginnings will do, "
              "a comma means or:")
           + QStringLiteral("<br><code>life:hypo lint:error,warning platform:sm90 viewed:no by:lift</code>"
                            "<table style='margin-top:6px'>%1</table>")
                 .arg(rows);
}

} // namespace klineage::ui
