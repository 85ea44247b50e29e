// SPDX-License-Identifier: GPL-3.0-or-later
// What NewLineageDialog asks an author, and how the answer comes into the form.
#include "ui/begin/newlineagedialog.h"

#include "core/talk/planquestion.h"
#include "ui/begin/askplandialog.h"
#include "ui/begin/launchform.h"
#include "ui/editor/draft.h"
#include "ui/editor/verdictstrip.h"
#include "ui/highlight/highlightededit.h"
#include "ui/models/workspaceid.h"
#include "ui/runs/runentry.h"

#include <QCheckBox>
#include <QDateTime>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTabWidget>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int planOutputTokens = 8192; ///< with room for a model that thinks

/// Beside the drafts, so that what was paid for can be looked up.
std::filesystem::path questionFolder(const QString &workspaceRoot)
{
    const QString now = QDateTime::currentDateTimeUtc().toString(QStringLiteral("yyyyMMdd-HHmmss-zzz"));
    return defaultDraftDirectory() / "new-lineages"
           / (workspaceId(workspaceRoot) + QStringLiteral("-questions")).toStdString() / now.toStdString();
}

} // namespace

void NewLineageDialog::setKeys(KeyRing *keys)
{
    m_keys = keys;
    m_asker.setKeys(keys);
}

Result<llm::Request> NewLineageDialog::planRequest() const
{
    const workload::Workload *workload = chosenWorkload();
    if (!workload)
        return fail(ErrorCode::InvalidInput, "Choose a workload: the plan is for it.");
    const workload::PlanDraft asked = draft();
    if (asked.code.empty() || asked.kernel.empty())
        return fail(ErrorCode::InvalidInput,
                    "There is no kernel in the source yet that a plan could launch.");
    const Result<run::PlanQuestion> question =
        run::planQuestion(asked, *workload, workload::checkDraft(asked, *workload));
    if (!question)
        return tl::unexpected(question.error());
    llm::Request request;
    request.purpose = "plan";
    request.system = question->system;
    request.messages = {{llm::Role::User, question->message, false}};
    request.maxOutputTokens = planOutputTokens;
    if (Status sound = llm::checkRequest(request); !sound)
        return tl::unexpected(sound.error());
    return request;
}

void NewLineageDialog::askForPlan()
{
    if (m_asker.isAsking() || m_job || m_isWriting || !m_source)
        return;
    const Result<llm::Request> request = planRequest();
    if (!request) {
        m_verdict->setFailure(QString::fromStdString(request.error().message));
        return;
    }
    const std::filesystem::path root = m_root.toStdString();
    AskPlanDialog dialog(*request, root, m_keys, this);
    if (dialog.exec() != QDialog::Accepted)
        return;
    keep();
    const QString problem = m_asker.ask(dialog.settings(), *request, root, questionFolder(m_root));
    if (!problem.isEmpty())
        m_verdict->setFailure(problem);
    updateButtons();
}

void NewLineageDialog::onPlanAnswered(const QString &reply, double dollars)
{
    updateButtons();
    const std::string code = m_source->toPlainText().toStdString();
    const Result<std::string> candidate = run::readPlanReply(reply.toStdString(), code, surface());
    if (!candidate) {
        const QString why = QString::fromStdString(candidate.error().message);
        m_verdict->setFailure(
            tr("%1 The question cost %2; the form is as it was.").arg(why, formatDollars(dollars)));
        return;
    }
    takePlan(*candidate, code);
    check();
    m_verdict->setFailure(
        tr("The author's plan is in the form; it cost %1. Nothing has been gated: read it, and gate it.")
            .arg(formatDollars(dollars)));
}

void NewLineageDialog::onPlanFailed(const QString &problem, double dollars)
{
    updateButtons();
    m_verdict->setFailure(dollars > 0 ? tr("%1 It may have cost %2.").arg(problem, formatDollars(dollars))
                                      : problem);
}

/// Into the fields where they can hold the plan, else into the candidate file. True: the text has a plan.
bool NewLineageDialog::takePlan(const std::string &candidateText, const std::string &code)
{
    const auto candidate = kernel::parseCandidate(candidateText, m_fileName.toStdString());
    const auto plan = candidate ? workload::draftOf(*candidate) : std::nullopt;
    const kernel::SourceOutline outline = kernel::outlineSource(code, surface());
    // A tunable that is no `#define` of the code has no field.
    const bool hasFields =
        plan && std::all_of(plan->tunables.begin(), plan->tunables.end(), [&](const auto &tunable) {
            return std::any_of(outline.constants.begin(), outline.constants.end(),
                               [&](const auto &constant) { return constant.name == tunable.name; });
        });
    m_byHand->setChecked(!hasFields);
    if (hasFields) {
        m_launch->setDraft(*plan, {});
        onEdited();
    } else {
        m_preview->setPlainText(QString::fromStdString(candidateText));
    }
    return hasFields;
}

} // namespace klineage::ui
