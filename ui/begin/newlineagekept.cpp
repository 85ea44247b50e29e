// SPDX-License-Identifier: GPL-3.0-or-later
// NewLineageDialog as it is kept between two starts.
#include "ui/begin/launchform.h"
#include "ui/begin/newlineagedialog.h"
#include "ui/editor/verdictstrip.h"
#include "ui/highlight/highlightededit.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>

#include <algorithm>

namespace klineage::ui {

KeptForm NewLineageDialog::form() const
{
    const workload::PlanDraft plan = m_launch->draft();
    KeptForm form;
    form.fileName = m_fileName;
    form.surface = m_surface->currentData().toString();
    form.code = m_source->toPlainText();
    form.byHand = m_written == Written::ByHand ? m_preview->toPlainText() : QString();
    form.workload = m_workload->currentData().toString();
    form.name = m_name->text();
    form.platform = m_platform->text();
    form.title = m_title->text();
    form.origin = m_origin->text();
    form.kernel = QString::fromStdString(plan.kernel);
    form.grid = QString::fromStdString(workload::joinList(plan.grid));
    form.block = QString::fromStdString(workload::joinList(plan.block));
    form.shared = QString::fromStdString(plan.shared);
    for (const std::string &arg : plan.args)
        form.args << QString::fromStdString(arg);
    for (const kernel::Tunable &tunable : plan.tunables) {
        QStringList values;
        for (const std::int64_t value : tunable.values)
            values << QString::number(value);
        form.tunables << QStringLiteral("%1=%2:%3")
                             .arg(QString::fromStdString(tunable.name))
                             .arg(tunable.defaultValue)
                             .arg(values.join(u','));
    }
    return form;
}

void NewLineageDialog::setForm(const KeptForm &form)
{
    m_quiet = true;
    m_verdict->clear();
    m_fileName = form.fileName;
    m_file->setText(form.fileName);
    m_file->setToolTip({});
    if (!form.surface.isEmpty())
        setSurface(kernel::surfaceFromString(form.surface.toStdString()).value_or(kernel::Surface()));
    m_source->setPlainText(form.code);
    m_workload->setCurrentIndex(std::max(0, m_workload->findData(form.workload)));
    m_name->setText(form.name);
    m_title->setText(form.title);
    m_origin->setText(form.origin);
    if (!form.platform.isEmpty())
        m_platform->setText(form.platform);
    readSource();
    m_launch->setWorkload(chosenWorkload());
    workload::PlanDraft plan;
    plan.kernel = form.kernel.toStdString();
    plan.grid = workload::splitList(form.grid.toStdString());
    plan.block = workload::splitList(form.block.toStdString());
    plan.shared = form.shared.toStdString();
    for (const QString &arg : form.args)
        plan.args.push_back(arg.toStdString());
    for (const QString &text : form.tunables) {
        kernel::Tunable tunable;
        tunable.name = text.section(u'=', 0, 0).toStdString();
        tunable.defaultValue = text.section(u'=', 1).section(u':', 0, 0).toLongLong();
        for (const QString &value : text.section(u':', 1).split(u',', Qt::SkipEmptyParts))
            tunable.values.push_back(value.toLongLong());
        plan.tunables.push_back(std::move(tunable));
    }
    m_launch->setDraft(plan, {});
    m_byHand->setChecked(!form.byHand.isEmpty());
    if (!form.byHand.isEmpty())
        m_preview->setPlainText(form.byHand);
    m_quiet = false;
    onEdited();
}

/// What was typed outlives the window.
void NewLineageDialog::keep()
{
    if (!m_source || m_root.isEmpty())
        return;
    if (m_source->toPlainText().isEmpty() && m_written == Written::ByForm) {
        std::error_code ignored;
        std::filesystem::remove(keptFormFile(m_root), ignored);
        return;
    }
    if (const Status saved = saveForm(keptFormFile(m_root), form()); !saved)
        emit message(QString::fromStdString(saved.error().message));
}

} // namespace klineage::ui
