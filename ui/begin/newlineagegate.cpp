// SPDX-License-Identifier: GPL-3.0-or-later
// What NewLineageDialog asks of the gate and writes into the workspace.
#include "ui/begin/newlineagedialog.h"

#include "core/workspace/starter.h"
#include "ui/editor/verdictstrip.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/verdicttext.h"

#include <QLineEdit>
#include <QPushButton>

#include <algorithm>

namespace klineage::ui {

/// Where the gate reads the workload: a template's lies in a folder of its own until the lineage is written.
std::filesystem::path NewLineageDialog::workloadDirectory(QString *problem)
{
    const workload::Workload *workload = chosenWorkload();
    if (!isTemplate())
        return workload->directory;
    m_templates = std::make_unique<QTemporaryDir>();
    const std::filesystem::path root = m_templates->path().toStdString();
    if (Status added = addTemplateWorkload(root, workload->name); !added)
        *problem = QString::fromStdString(added.error().message);
    return root / "workloads" / workload->name;
}

void NewLineageDialog::gate()
{
    if (m_job || m_isWriting || !m_source)
        return;
    if (m_isChecking) {
        m_gateAsked = true;
        check();
        return;
    }
    if (!m_isSound) {
        m_verdict->setFailure(tr("The plan is not valid yet: mend what is marked."));
        return;
    }
    keep();
    QString problem;
    gate::GateRequest request;
    request.workloadDirectory = workloadDirectory(&problem);
    request.candidateText = m_candidate.toStdString();
    request.candidateName = std::string("K00") + surface().language().extension;
    if (!problem.isEmpty() || !m_gate->start(request, {}, {})) {
        m_verdict->setFailure(problem.isEmpty() ? tr("Another trial is running; stop it first, or wait.")
                                                : problem);
        return;
    }
    m_job = m_gate->currentJob().id;
    m_gatedText = request.candidateText;
    m_gatedAs = wanted();
    m_verdict->setRunning(progressWord(),
                          tr("Gating %1…").arg(QString::fromStdString(request.candidateName)));
    updateButtons();
}

void NewLineageDialog::onFinished(quint64 id, const gate::Trial &trial)
{
    if (m_job != id)
        return;
    m_job.reset();
    m_verdict->setTrial(trial);
    updateButtons();
    if (trial.verdict.status != gate::VerdictStatus::Correct)
        return;
    m_gatedAs.platform = trial.environment.platform;
    write(m_gatedAs, m_gatedText, trial);
}

void NewLineageDialog::onEnded(quint64 id, const QString &text)
{
    if (m_job != id)
        return;
    m_job.reset();
    m_verdict->setFailure(text);
    updateButtons();
}

void NewLineageDialog::saveUngated()
{
    if (m_save->isEnabled())
        write(wanted(), m_candidate.toStdString(), std::nullopt);
}

void NewLineageDialog::write(const lineage::NewLineage &lineage, const std::string &text,
                             const std::optional<gate::Trial> &trial)
{
    const auto workload = std::find_if(m_workloads.begin(), m_workloads.end(),
                                       [&](const auto &one) { return one.name == lineage.workload; });
    if (workload == m_workloads.end())
        return;
    const bool isNew = workload >= m_workloads.begin() + static_cast<std::ptrdiff_t>(m_existing);
    m_isWriting = true;
    updateButtons();
    m_writing.start(interactivePool(),
                    [this, lineage, text, trial, isNew, root = std::filesystem::path(m_root.toStdString()),
                     existing = workload->directory](const std::stop_token &, const JobSlot::Post &post) {
                        Status status = isNew ? addTemplateWorkload(root, lineage.workload) : Status();
                        std::string key;
                        if (status) {
                            const auto begun = lineage::beginLineage(
                                isNew ? root / "workloads" / lineage.workload : existing, lineage, text,
                                trial);
                            if (begun)
                                key = begun->key();
                            else
                                status = tl::unexpected(begun.error());
                        }
                        post([this, status, key = QString::fromStdString(key)] {
                            m_isWriting = false;
                            updateButtons();
                            if (!status) {
                                m_verdict->setFailure(QString::fromStdString(status.error().message));
                                return;
                            }
                            setForm({});
                            std::error_code ignored;
                            std::filesystem::remove(keptFormFile(m_root), ignored);
                            accept();
                            emit begun(key);
                        });
                    });
}

} // namespace klineage::ui
