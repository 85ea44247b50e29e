// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/welcomepage.h"

#include "ui/style/flowlayout.h"
#include "ui/style/fonts.h"
#include "ui/style/icons.h"

#include <QDir>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

constexpr int welcomeColumn = 560;

QLabel *welcomeText(const QString &text)
{
    auto *label = new QLabel(text);
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    return label;
}

} // namespace

WelcomePage::WelcomePage(QWidget *parent)
    : QWidget(parent)
    , m_why(welcomeText({}))
    , m_column(new QVBoxLayout)
    , m_recent(new QWidget)
{
    auto *mark = new QLabel;
    mark->setPixmap(applicationIcon().pixmap(44, 44));
    m_why->setFont(strongFont());
    m_why->setObjectName(QStringLiteral("welcomeWhy"));
    m_column->setSpacing(4);
    m_column->addWidget(mark);
    m_column->addSpacing(6);
    m_column->addWidget(m_why);
    m_column->addWidget(welcomeText(tr(
        "A workspace is a folder with workloads/, the operators with the lineages of their kernels, and skills/, the cards that were "
        "learned from them.")));
    m_column->addSpacing(8);
    m_open = addWay(tr("&Open a folder…"),
                    tr("A workspace that is there already; a clone of this project is one."), nullptr);
    m_create = addWay({}, {}, &m_createText);
    m_example = addWay(tr("Copy the &example…"), {}, &m_exampleText);
    m_begin = addWay(tr("New &lineage from my kernel…"), {}, &m_beginText);
    m_open->setObjectName(QStringLiteral("primaryButton"));
    connect(m_open, &QPushButton::clicked, this, &WelcomePage::openRequested);
    connect(m_create, &QPushButton::clicked, this, [this] { emit createRequested(m_createIn); });
    connect(m_example, &QPushButton::clicked, this, &WelcomePage::exampleRequested);
    connect(m_begin, &QPushButton::clicked, this, &WelcomePage::newLineageRequested);

    m_column->addSpacing(8);
    m_column->addWidget(welcomeText(tr(
        "A Python function or a problem of another benchmark becomes a workload, cards of other libraries become hypotheses, and "
        "what a search of another system found a "
        "lineage of a workload, in an open workspace:")));
    m_newOperator = new QPushButton(tr("New opera&tor from a Python function…"));
    m_importProblems = new QPushButton(tr("Import &problems…"));
    m_importCards = new QPushButton(tr("I&mport cards…"));
    m_importArchive = new QPushButton(tr("Import a search's &archive…"));
    m_newOperator->setToolTip(tr("With a template to begin from"));
    m_importProblems->setToolTip(tr("FlashInfer Trace, SOL-ExecBench, KernelBench"));
    m_importCards->setToolTip(tr("SKILL.md and rich JSON of KLineage, skills of the Agent Skills standard"));
    m_importArchive->setToolTip(tr("Archives of OpenEvolve, ShinkaEvolve and AdaExplore"));
    auto *imports = new FlowLayout(6);
    imports->addWidget(m_newOperator);
    imports->addWidget(m_importProblems);
    imports->addWidget(m_importCards);
    imports->addWidget(m_importArchive);
    m_column->addLayout(imports);
    connect(m_newOperator, &QPushButton::clicked, this, &WelcomePage::newOperatorRequested);
    connect(m_importProblems, &QPushButton::clicked, this, &WelcomePage::importProblemsRequested);
    connect(m_importCards, &QPushButton::clicked, this, &WelcomePage::importCardsRequested);
    connect(m_importArchive, &QPushButton::clicked, this, &WelcomePage::importArchiveRequested);
    m_column->addSpacing(8);
    m_column->addWidget(m_recent);
    new QVBoxLayout(m_recent);
    m_recent->layout()->setContentsMargins(0, 0, 0, 0);

    auto *column = new QWidget;
    column->setLayout(m_column);
    column->setMaximumWidth(welcomeColumn);
    auto *page = new QWidget;
    auto *outer = new QVBoxLayout(page);
    outer->setContentsMargins(24, 18, 24, 18);
    outer->addStretch(2);
    auto *middle = new QHBoxLayout;
    middle->addStretch(1);
    middle->addWidget(column, 100);
    middle->addStretch(1);
    outer->addLayout(middle);
    outer->addStretch(3);
    auto *scroll = new QScrollArea;
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus); // its buttons scroll it
    scroll->setWidget(page);
    auto *whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    whole->addWidget(scroll);
    setFocusProxy(m_open);
    setAccessibleName(tr("Welcome"));
}

/// A button and, below it, what it does.
QPushButton *WelcomePage::addWay(const QString &text, const QString &what, QLabel **label)
{
    auto *button = new QPushButton(text);
    auto *said = welcomeText(what);
    said->setForegroundRole(QPalette::PlaceholderText);
    m_column->addWidget(button, 0, Qt::AlignLeft);
    m_column->addWidget(said);
    m_column->addSpacing(4);
    if (label)
        *label = said;
    return button;
}

void WelcomePage::setOffer(const Offer &offer)
{
    m_why->setText(offer.why);
    m_createIn = offer.createIn;
    m_create->setText(offer.createIn.isEmpty() ? tr("&Create one from the template…")
                                               : tr("&Create one here from the template"));
    const QString what =
        tr("A workload with its built-in oracle, SiLU, and its first kernel, ready to be gated.");
    m_createText->setText(offer.createIn.isEmpty()
                              ? what
                              : tr("%1 In %2.").arg(what, QDir::toNativeSeparators(offer.createIn)));
    m_example->setEnabled(offer.hasExample);
    m_exampleText->setText(
        offer.hasExample ? tr(
            "The library of the installed program: its workloads, lineages and cards, to be changed freely.")
                         : tr("This program lies in no installation, so it has no example beside it."));
    m_begin->setEnabled(offer.canBegin);
    m_newOperator->setEnabled(offer.canBegin);
    m_importProblems->setEnabled(offer.canBegin);
    m_importCards->setEnabled(offer.canBegin);
    m_importArchive->setEnabled(offer.canBegin);
    m_beginText->setText(
        offer.canBegin
            ? tr("A .cu or .cl file of your own becomes the first state, K00.")
            : tr("Once there is a workspace: a .cu or .cl file of your own becomes the first state, K00."));

    while (QLayoutItem *item = m_recent->layout()->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    m_recent->setVisible(!offer.recent.isEmpty());
    if (!offer.recent.isEmpty())
        m_recent->layout()->addWidget(welcomeText(tr("Opened before:")));
    for (const QString &folder : offer.recent) {
        auto *button = new QPushButton(QDir::toNativeSeparators(folder));
        button->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Fixed);
        button->setMaximumWidth(welcomeColumn);
        button->setToolTip(button->text());
        button->setAccessibleName(tr("Open %1").arg(button->text()));
        m_recent->layout()->addWidget(button);
        connect(button, &QPushButton::clicked, this, [this, folder] { emit recentRequested(folder); });
    }
}

QString WelcomePage::why() const
{
    return m_why->text();
}

} // namespace klineage::ui
