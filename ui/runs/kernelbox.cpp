// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/kernelbox.h"

#include "core/workspace/workspace.h"
#include "ui/style/choosefile.h"

#include <QComboBox>
#include <QCompleter>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QToolButton>

namespace klineage::ui {

KernelBox::KernelBox(const Workspace &workspace, QWidget *parent)
    : QWidget(parent)
    , m_box(new QComboBox)
{
    m_box->setEditable(true);
    m_box->setInsertPolicy(QComboBox::NoInsert);
    m_box->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_box->setMaxVisibleItems(20);
    for (const lineage::Lineage &lineage : workspace.lineages) {
        for (const lineage::State &state : lineage.states)
            m_box->addItem(QString::fromStdString(lineage.key() + '/' + state.id));
    }
    m_box->setCurrentIndex(-1);
    m_box->completer()->setCompletionMode(QCompleter::PopupCompletion);
    m_box->completer()->setFilterMode(Qt::MatchContains);
    m_box->lineEdit()->setPlaceholderText(tr("WORKLOAD/LINEAGE/STATE, or a candidate file"));
    auto *file = new QToolButton;
    file->setText(tr("File…"));
    file->setToolTip(tr("Choose a candidate file"));
    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(m_box, 1);
    row->addWidget(file);
    setFocusProxy(m_box);
    connect(m_box, &QComboBox::currentTextChanged, this, &KernelBox::changed);
    connect(file, &QToolButton::clicked, this, &KernelBox::chooseFile);
}

QString KernelBox::text() const
{
    return m_box->currentText().trimmed();
}

void KernelBox::setText(const QString &text)
{
    const int index = m_box->findText(text);
    if (index >= 0)
        m_box->setCurrentIndex(index);
    else
        m_box->setEditText(text);
}

bool KernelBox::isFile() const
{
    const QString name = text();
    return m_box->findText(name) < 0 && QFileInfo(name).isFile();
}

void KernelBox::setAccessibleNameOfField(const QString &name)
{
    m_box->setAccessibleName(name);
}

void KernelBox::chooseFile()
{
    const QString file = chooseFileToOpen(this, tr("Choose a candidate file"), {},
                                          tr("Candidates (*.cl *.cu);;All files (*)"));
    if (!file.isEmpty())
        setText(file);
}

} // namespace klineage::ui
