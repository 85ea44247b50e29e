// SPDX-License-Identifier: GPL-3.0-or-later
// The widgets of NewLineageDialog and how they stand.
#include "ui/begin/launchform.h"
#include "ui/begin/newlineagedialog.h"
#include "ui/editor/verdictstrip.h"
#include "ui/highlight/highlightededit.h"
#include "ui/style/keyedcommand.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QSplitter>
#include <QTabWidget>
#include <QVBoxLayout>

namespace klineage::ui {

namespace {

QLabel *newLineageSentence()
{
    auto *label = new QLabel;
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->hide();
    return label;
}

} // namespace

QWidget *NewLineageDialog::makeSource()
{
    m_source = new HighlightedEdit;
    m_source->setAccessibleName(tr("Source of the kernel"));
    m_source->setPlaceholderText(tr(
        "Open a .cu or .cl file, drop one here, or paste its code. A file with a launch plan fills the form."));
    m_source->setTabChangesFocus(true);
    m_preview = new HighlightedEdit;
    m_preview->setAccessibleName(tr("Candidate file"));
    m_preview->setTabChangesFocus(true);
    m_preview->setReadOnly(true);
    m_pages = new QTabWidget;
    m_pages->addTab(m_source, tr("Source"));
    m_pages->addTab(m_preview, tr("Candidate file"));

    m_file = new QLabel;
    m_file->setTextFormat(Qt::PlainText);
    m_file->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_open = new QPushButton(tr("&Open file…"));
    m_surface = new QComboBox;
    m_surface->setAccessibleName(tr("Language"));
    for (const kernel::Surface one : kernel::allSurfaces())
        m_surface->addItem(QString::fromUtf8(one.language().name), QString::fromUtf8(kernel::toString(one)));
    auto *row = new QHBoxLayout;
    row->addWidget(m_open);
    row->addWidget(m_file, 1);
    row->addWidget(m_surface);
    auto *side = new QWidget;
    auto *column = new QVBoxLayout(side);
    column->setContentsMargins(0, 0, 6, 0);
    column->addLayout(row);
    column->addWidget(m_pages, 1);
    return side;
}

QWidget *NewLineageDialog::makeForm()
{
    m_workload = new QComboBox;
    m_workload->setAccessibleName(tr("Workload: what the kernel computes"));
    m_name = new QLineEdit;
    m_name->setAccessibleName(tr("Name of the lineage"));
    m_name->setPlaceholderText(tr("put after the platform; empty: the platform's own"));
    m_nameProblem = newLineageSentence();
    m_nameProblem->setObjectName(QStringLiteral("problem.name"));
    m_platform = new QLineEdit;
    m_platform->setAccessibleName(tr("Platform"));
    m_platform->setPlaceholderText(tr("the gate says it; needed to save ungated"));
    m_title = new QLineEdit;
    m_title->setAccessibleName(tr("Title of the lineage"));
    m_origin = new QLineEdit;
    m_origin->setAccessibleName(tr("Origin"));
    m_origin->setPlaceholderText(tr("where the kernel comes from, and its licence"));
    m_launch = new LaunchForm;
    m_byHand = new QCheckBox(tr("Write the candidate file by han&d"));
    m_byHand->setToolTip(tr(
        "For plans with several launches, workspaces, tensor maps or guards. The form then stays as it is."));

    m_ask = new QPushButton(tr("&Ask the author for the plan…"));
    m_ask->setObjectName(QStringLiteral("askPlan"));
    m_ask->setAutoDefault(false);
    setKeyedToolTip(
        m_ask,
        tr("A model or a program reads the source and fills the fields above; you see the cost before it is asked"),
        m_askAction);

    auto *form = new QFormLayout;
    form->setContentsMargins(0, 0, 0, 0);
    form->setHorizontalSpacing(10);
    form->setVerticalSpacing(6);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->addRow(tr("&Workload"), m_workload);
    form->addRow(tr("&Name"), m_name);
    form->addRow(QString(), m_nameProblem);
    form->addRow(tr("&Platform"), m_platform);
    form->addRow(tr("&Title"), m_title);
    form->addRow(tr("O&rigin"), m_origin);
    auto *page = new QWidget;
    auto *column = new QVBoxLayout(page);
    column->setContentsMargins(6, 0, 8, 0);
    column->setSpacing(8);
    column->addLayout(form);
    column->addWidget(m_launch);
    column->addWidget(m_ask, 0, Qt::AlignLeft);
    column->addWidget(m_byHand);
    column->addStretch(1);
    auto *scroll = new QScrollArea;
    scroll->setWidgetResizable(true);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setWidget(page);
    return scroll;
}

void NewLineageDialog::layOut()
{
    auto *sides = new QSplitter(Qt::Horizontal);
    sides->addWidget(makeSource());
    sides->addWidget(makeForm());
    sides->setStretchFactor(0, 3);
    sides->setStretchFactor(1, 2);
    sides->setChildrenCollapsible(false);
    sides->setHandleWidth(1);

    m_device = newLineageSentence();
    m_verdict = new VerdictStrip;
    m_check = new QLabel;
    m_check->setObjectName(QStringLiteral("newLineageCheck"));
    m_check->setTextFormat(Qt::PlainText);
    m_check->setWordWrap(true);
    m_save = new QPushButton(tr("Save &ungated"));
    m_save->setToolTip(tr("Write the lineage with a K00 that nothing has measured yet"));
    m_stop = new QPushButton(tr("&Stop"));
    m_run = new QPushButton(tr("Gate &it"));
    m_run->setObjectName(QStringLiteral("primaryButton"));
    setKeyedToolTip(m_run,
                    tr("Compile, check and time it on this machine; when it is correct it becomes K00"),
                    m_gateAction);
    m_close = new QPushButton(tr("&Close"));
    m_close->setToolTip(tr("What was typed is kept"));
    for (QPushButton *button : {m_open, m_save, m_stop, m_run, m_close})
        button->setAutoDefault(false);
    auto *bottom = new QHBoxLayout;
    bottom->addWidget(m_check, 1);
    bottom->addWidget(m_save);
    bottom->addWidget(m_stop);
    bottom->addWidget(m_run);
    bottom->addWidget(m_close);

    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(12, 10, 12, 10);
    column->setSpacing(8);
    column->addWidget(sides, 1);
    column->addWidget(m_device);
    column->addWidget(m_verdict);
    column->addLayout(bottom);
    setTabOrder(m_open, m_surface);
    setTabOrder(m_surface, m_source);
    fitScreen();
    sides->setSizes({width() * 3 / 5, width() * 2 / 5});
}

/// As designed, where the screen is large enough for it.
void NewLineageDialog::fitScreen()
{
    constexpr QSize frame(16, 40); // that the desktop adds, about
    resize(QSize(1180, 800).boundedTo(screen()->availableSize() - frame));
}

} // namespace klineage::ui
