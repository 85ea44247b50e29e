// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/windows/presenter.h"

#include "core/workspace/workspace.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/story/chain/chainpicture.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/style/fonts.h"
#include "ui/style/format.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QMouseEvent>
#include <QPainter>
#include <QScreen>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr double designHeight = 620; // of a window with text of the usual size
constexpr double largest = 3.2;

QLabel *makeLine()
{
    auto *label = new QLabel;
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    return label;
}

void setSize(QLabel *label, double points, QFont::Weight weight, const QColor &color)
{
    QFont font = interfaceFont();
    font.setPointSizeF(points);
    font.setWeight(weight);
    label->setFont(font);
    QPalette palette = label->palette();
    palette.setColor(QPalette::WindowText, color);
    label->setPalette(palette);
}

} // namespace

Presenter::Presenter(WorkspaceModel *workspace, Selection *selection)
    : m_workspace(workspace)
    , m_selection(selection)
    , m_subject(makeLine())
    , m_heading(makeLine())
    , m_gain(makeLine())
    , m_words(makeLine())
    , m_foot(makeLine())
    , m_canvas(new PictureCanvas(QStringLiteral("present")))
{
    setWindowTitle(tr("KLineage: presentation"));
    setAccessibleName(tr("Presentation of a lineage"));
    setAttribute(Qt::WA_QuitOnClose, false);
    setFocusPolicy(Qt::StrongFocus);
    m_canvas->setFocusPolicy(Qt::NoFocus); // its arrow keys would not turn pages
    m_canvas->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_gain->setAlignment(Qt::AlignRight | Qt::AlignTop);
    m_gain->setWordWrap(false);
    m_words->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_foot->setAlignment(Qt::AlignRight);
    auto *layout = new QGridLayout(this);
    layout->setContentsMargins(48, 36, 48, 20);
    layout->setVerticalSpacing(10);
    layout->addWidget(m_subject, 0, 0);
    layout->addWidget(m_heading, 1, 0);
    layout->addWidget(m_words, 2, 0);
    layout->addWidget(m_gain, 0, 1, 3, 1);
    layout->addWidget(m_canvas, 3, 0, 1, 2);
    layout->addWidget(m_foot, 4, 0, 1, 2);
    layout->setColumnStretch(0, 1);
    layout->setRowStretch(3, 1);
    const auto follow = [this] {
        if (isVisible()) {
            read();
            showPage();
        }
    };
    connect(workspace, &WorkspaceModel::lineageChanged, this, follow);
    connect(workspace, &WorkspaceModel::loaded, this, follow);
}

void Presenter::read()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    m_chain = lineage ? chainOf(*lineage) : Chain();
    m_chain.branches.clear(); // nobody has named them, and nobody asks for them from the last row
    const workload::Workload *workload =
        lineage ? m_workspace->workload(QString::fromStdString(lineage->workload)) : nullptr;
    m_title = workload ? QString::fromStdString(workload->title) : QString();
    m_page = std::clamp(m_page, 0, pageCount() - 1);
}

void Presenter::begin()
{
    read();
    m_page = 0; // a story has a beginning, whatever row is selected
    // Where no window manager makes it as large as the screen it is so all the same.
    const QWidget *window = QApplication::activeWindow();
    setGeometry((window ? window->screen() : screen())->geometry());
    scaleText();
    showPage();
    showFullScreen();
    raise();
    activateWindow();
    setFocus();
}

void Presenter::turn(int by)
{
    const int page = std::clamp(m_page + by, 0, pageCount() - 1);
    if (page == m_page)
        return;
    m_page = page;
    showPage();
}

QString Presenter::heading() const
{
    return m_heading->text();
}

void Presenter::showPage()
{
    const bool isAll = m_page + 1 == pageCount();
    m_subject->setText(m_title.isEmpty() ? m_chain.name
                                         : QStringLiteral("%1 · %2").arg(m_title, m_chain.name));
    m_canvas->setPicture(waterfall(m_chain, isAll ? -1 : m_page));
    if (isAll) {
        showAll();
    } else {
        const ChainPoint &point = m_chain.points[static_cast<std::size_t>(m_page)];
        showState(point);
        m_canvas->select(m_chain.key, point.row);
        m_selection->setRow(point.row);
    }
    m_foot->setText(tr("%1 of %2   ·   ← →   ·   Esc ends").arg(m_page + 1).arg(pageCount()));
    setAccessibleDescription(m_heading->text() + QStringLiteral(". ") + m_words->text());
    scaleText();
}

void Presenter::showState(const ChainPoint &point)
{
    m_heading->setText(point.id + QStringLiteral("   ") + point.title);
    QStringList words;
    const skills::CardRecord *card = m_workspace->card(point.card);
    if (card)
        words << QString::fromStdString(card->card.intent.text);
    else if (!point.category.isEmpty())
        words << point.category;
    if (!point.card.isEmpty())
        words << tr("SkillCard %1").arg(point.card);
    if (!point.bound.isEmpty())
        words << tr("%1-bound").arg(point.bound);
    m_words->setText(words.join(QStringLiteral("   ·   ")));
    const QString latency = point.ns > 0 ? formatLatency(point.ns) : tr("not timed");
    m_gain->setText(point.step.isEmpty() ? latency : point.step + QLatin1Char('\n') + latency);
}

void Presenter::showAll()
{
    const ChainPoint *first = m_chain.firstTimed();
    const ChainPoint *last = m_chain.lastTimed();
    if (!first || !last) {
        m_heading->setText(tr("Nothing was timed yet"));
        m_words->clear();
        m_gain->clear();
        return;
    }
    m_heading->setText(tr("%1 → %2 in %3 steps")
                           .arg(formatLatency(first->ns), formatLatency(last->ns))
                           .arg(m_chain.points.size() - 1));
    QStringList words{tr("%1 over %2: medians of two trials, not paired")
                          .arg(formatSpeedup(first->ns / last->ns), first->id)};
    if (m_chain.toReference.value > 0)
        words << tr("%1 over %2, paired").arg(formatSpeedup(m_chain.toReference.value), m_chain.reference);
    if (!m_chain.device.isEmpty())
        words << m_chain.device;
    m_words->setText(words.join(QStringLiteral("   ·   ")));
    m_gain->setText(formatSpeedup(first->ns / last->ns));
}

/// Large enough to be read from the last row, whatever the screen.
void Presenter::scaleText()
{
    const Theme &theme = Theme::current();
    const double points = interfaceFont().pointSizeF() / textScale();
    const double scale = std::clamp(height() / designHeight, 1.0, largest);
    setSize(m_subject, points * scale * 1.15, QFont::Normal, theme.dim);
    setSize(m_heading, points * scale * 2.1, QFont::DemiBold, theme.text);
    setSize(m_words, points * scale * 1.25, QFont::Normal, theme.text);
    const bool isAll = m_page + 1 == pageCount();
    const Tone tone = isAll                    ? Tone::Good
                      : m_chain.points.empty() ? Tone::Neutral
                                               : m_chain.points[static_cast<std::size_t>(m_page)].tone;
    setSize(m_gain, points * scale * 2.1, QFont::DemiBold,
            tone == Tone::Neutral ? theme.text : toneColor(tone));
    setSize(m_foot, points * scale * 0.9, QFont::Normal, theme.dim);
    QFont picture = interfaceFont();
    picture.setPointSizeF(points * scale * 1.05);
    m_canvas->setFont(picture);
}

void Presenter::paintEvent(QPaintEvent *)
{
    QPainter(this).fillRect(rect(), Theme::current().panel);
}

void Presenter::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    scaleText();
}

void Presenter::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange && isVisible())
        scaleText();
}

void Presenter::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        turn(1);
    else if (event->button() == Qt::RightButton)
        turn(-1);
}

} // namespace klineage::ui
