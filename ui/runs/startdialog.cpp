// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/startdialog.h"

#include "core/policy/policy.h"
#include "core/run/admit/heldout.h"
#include "ui/runs/authorrows.h"
#include "ui/runs/kernelbox.h"
#include "ui/runs/lineagechecks.h"
#include "ui/style/segmentedswitch.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>

#include <algorithm>
#include <array>
#include <utility>

namespace klineage::ui {

namespace {

constexpr std::array kinds{run::Kind::Materialize, run::Kind::Deoptimize, run::Kind::Lift, run::Kind::Admit};

std::string textOf(const QLineEdit *line)
{
    return line->text().trimmed().toStdString();
}

void setTextOf(QLineEdit *line, const std::map<std::string, std::string> &values, const char *name)
{
    const auto found = values.find(name);
    line->setText(found == values.end() ? QString() : QString::fromStdString(found->second));
}

void setCountOf(QSpinBox *box, const std::map<std::string, std::string> &values,
                const run::CountOption &option)
{
    const auto found = values.find(option.name);
    box->setValue(found == values.end() ? option.absent : QString::fromStdString(found->second).toInt());
}

bool isYes(const std::map<std::string, std::string> &values, const char *name, const char *yes)
{
    const auto found = values.find(name);
    return found != values.end() && found->second == yes;
}

/// The weakest state of the first lineage that the card does not cite and whose language it speaks; empty when there is none.
std::string suggestedTarget(const Workspace &workspace, const skills::Card &card)
{
    const std::vector<skills::Citation> citations = run::citationsOf(card);
    const std::vector<std::string> &languages = card.scope.languages;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        const std::string prefix = lineage.workload + '/';
        const bool isCited =
            std::any_of(citations.begin(), citations.end(),
                        [&](const skills::Citation &citation) { return citation.starts_with(prefix); });
        const bool isSpoken =
            languages.empty()
            || std::find(languages.begin(), languages.end(), kernel::toString(lineage.surface))
                   != languages.end();
        if (!isCited && isSpoken && !lineage.states.empty())
            return lineage.key() + '/' + lineage.states.front().id;
    }
    return {};
}

QString wholeText(const Error &error)
{
    return QString::fromStdString(error.detail.empty() ? error.message : error.message + "\n" + error.detail);
}

} // namespace

run::Kind StartDialog::kind() const
{
    return kinds[static_cast<std::size_t>(std::clamp(m_kind->currentIndex(), 0, 3))];
}

void StartDialog::setKind(run::Kind kind)
{
    const auto found = std::find(kinds.begin(), kinds.end(), kind);
    m_kind->setCurrentIndex(static_cast<int>(found - kinds.begin()));
}

run::StartRequest StartDialog::request() const
{
    run::StartRequest request;
    request.kind = kind();
    const bool walks = request.kind == run::Kind::Materialize || request.kind == run::Kind::Deoptimize;
    const KernelBox *kernel = walks ? m_kernel : m_target;
    if (request.kind != run::Kind::Lift && kernel->isFile()) {
        request.workload = m_workload->currentText().toStdString();
        request.platform = textOf(m_platform);
    }
    const auto count = [&request](const run::CountOption &option, const QSpinBox *box) {
        request.options[option.name] = std::to_string(box->value());
    };
    switch (request.kind) {
    case run::Kind::Materialize:
        request.subject = m_kernel->text().toStdString();
        request.policy = m_policy->currentText().toStdString();
        request.seed = static_cast<std::uint64_t>(m_seed->value());
        if (m_hypotheses->isChecked())
            request.options["hypotheses"] = "yes";
        if (m_heldOut->isChecked())
            request.options["held_out"] = "yes";
        break;
    case run::Kind::Deoptimize:
        request.subject = m_kernel->text().toStdString();
        if (const std::string name = textOf(m_name); !name.empty())
            request.options["name"] = name;
        count(run::rejectionsOption, m_rejections);
        count(run::repairsOption, m_repairs);
        count(run::withinOption, m_within);
        break;
    case run::Kind::Lift:
        request.subject = m_lineages->checked().join(QLatin1Char(',')).toStdString();
        if (m_again->isChecked())
            request.options["again"] = "1";
        break;
    case run::Kind::Admit:
        request.subject = m_card->currentText().toStdString();
        request.options["target"] = m_target->text().toStdString();
        count(run::attemptsOption, m_attempts);
        break;
    }
    if (request.kind != run::Kind::Admit)
        request.maxSteps = m_steps->value();
    const run::Settings author = m_author->author();
    request.provider = author.provider;
    request.model = author.model;
    request.author = author.author;
    request.capDollars = author.capDollars;
    return request;
}

void StartDialog::setRequest(const run::StartRequest &request)
{
    m_quiet = true;
    setKind(request.kind);
    const QString subject = QString::fromStdString(request.subject);
    if (request.kind == run::Kind::Admit) {
        m_card->setCurrentIndex(m_card->findText(subject));
        const auto target = request.options.find("target");
        m_target->setText(target == request.options.end() ? QString()
                                                          : QString::fromStdString(target->second));
        setCountOf(m_attempts, request.options, run::attemptsOption);
    } else if (request.kind == run::Kind::Lift) {
        m_lineages->setChecked(subject.split(QLatin1Char(','), Qt::SkipEmptyParts));
        m_again->setChecked(isYes(request.options, "again", "1"));
    } else {
        m_kernel->setText(subject);
    }
    if (request.kind == run::Kind::Materialize) {
        m_policy->setCurrentText(QString::fromStdString(request.policy));
        m_seed->setValue(static_cast<int>(std::min<std::uint64_t>(request.seed, 1'000'000)));
        m_hypotheses->setChecked(isYes(request.options, "hypotheses", "yes"));
        m_heldOut->setChecked(isYes(request.options, "held_out", "yes"));
    }
    if (request.kind == run::Kind::Deoptimize) {
        setTextOf(m_name, request.options, "name");
        setCountOf(m_rejections, request.options, run::rejectionsOption);
        setCountOf(m_repairs, request.options, run::repairsOption);
        setCountOf(m_within, request.options, run::withinOption);
    }
    if (!request.workload.empty())
        m_workload->setCurrentText(QString::fromStdString(request.workload));
    m_platform->setText(QString::fromStdString(request.platform));
    run::Settings author;
    author.provider = request.provider;
    author.model = request.model;
    author.author = request.author;
    author.capDollars = request.capDollars;
    m_author->setAuthor(author);
    m_steps->setValue(request.maxSteps);
    m_quiet = false;
    update();
}

void StartDialog::suggest(const Suggestion &suggestion)
{
    m_suggestion = suggestion;
    m_lineages->setChecked({suggestion.lineage});
    if (const int card = m_card->findText(suggestion.card); card >= 0)
        m_card->setCurrentIndex(card);
    cardChanged();
    kindChanged();
}

void StartDialog::cardChanged()
{
    const skills::CardRecord *card = m_workspace.findCard(m_card->currentText().toStdString());
    const QString shown = m_target->text();
    if (card && (shown.isEmpty() || shown == m_suggestedTarget)) {
        m_suggestedTarget = QString::fromStdString(suggestedTarget(m_workspace, card->card));
        m_target->setText(m_suggestedTarget);
    }
    update();
}

/// What the person has not typed follows the kind: a materialization begins with a weak kernel, a deoptimization with a strong one.
void StartDialog::kindChanged()
{
    const bool materializes = kind() == run::Kind::Materialize;
    const QString shown = m_kernel->text();
    if (shown.isEmpty() || shown == (materializes ? m_suggestion.strongest : m_suggestion.root))
        m_kernel->setText(materializes ? m_suggestion.root : m_suggestion.strongest);
    const run::CountOption &range = materializes ? run::materializeSteps : run::learnSteps;
    m_steps->setRange(range.least, range.most);
    m_steps->setSpecialValueText(materializes                      ? tr("until budget or policy end it")
                                 : kind() == run::Kind::Deoptimize ? tr("until nothing is left to remove")
                                                                   : tr("all of them"));
    update();
}

/// Fields that the kind or the author does not have are away; what is missing, or the estimate, is said at once.
void StartDialog::update()
{
    if (m_quiet)
        return;
    const run::StartRequest now = request();
    showFields(now);
    describe(now);
}

void StartDialog::showFields(const run::StartRequest &now)
{
    const bool materializes = now.kind == run::Kind::Materialize;
    const bool deoptimizes = now.kind == run::Kind::Deoptimize;
    const bool lifts = now.kind == run::Kind::Lift;
    const bool admits = now.kind == run::Kind::Admit;
    const bool fromFile = !lifts && (admits ? m_target : m_kernel)->isFile();
    const bool showsCards = materializes && policy::usesCards(now.policy, {});
    const std::pair<QWidget *, bool> rows[] = {
        {m_kernel, materializes || deoptimizes},
        {m_card, admits},
        {m_target, admits},
        {m_lineages, lifts},
        {m_again, lifts},
        {m_workload, fromFile},
        {m_platform, fromFile},
        {m_name, deoptimizes},
        {m_policy, materializes},
        {m_steps, !admits},
        {m_rejections, deoptimizes},
        {m_repairs, deoptimizes},
        {m_within, deoptimizes},
        {m_attempts, admits},
        {m_seed, materializes},
        {m_hypotheses, showsCards},
        {m_heldOut, showsCards},
        {m_gates, m_gates->count() > 0},
        {m_launcher, runPlace().gates == RunPlace::Launched},
    };
    for (const auto &[field, shown] : rows)
        m_form->setRowVisible(field, shown);
    label(m_kernel, deoptimizes ? tr("&Kernel (K*)") : tr("&Begin with"));
    label(m_steps, materializes ? tr("&Questions") : deoptimizes ? tr("&Steps") : tr("&Groups"));
}

void StartDialog::describe(const run::StartRequest &now)
{
    const Result<run::Settings> settings = run::startSettings(m_workspace, now);
    Result<std::optional<run::Estimate>> estimate = std::optional<run::Estimate>();
    if (settings)
        estimate = run::startEstimate(m_workspace, *settings);
    const RunPlace place = runPlace();
    const Result<gate::PoolFile> gates = place.gates == RunPlace::Launched
                                             ? gate::poolOfLauncher(place.launcher.toStdString())
                                             : gate::PoolFile();
    m_start->setEnabled(settings.has_value() && estimate.has_value() && gates.has_value());
    if (!settings || !estimate || !gates) {
        m_estimate->setText(wholeText(!settings   ? settings.error()
                                      : !estimate ? estimate.error()
                                                  : gates.error()));
        return;
    }
    m_settings = *settings;
    const QString cost =
        *estimate ? QString::fromStdString((*estimate)->text) : tr("Replies of this author cost nothing.");
    m_estimate->setText(QStringLiteral("%1 %2").arg(cost, notesOf(*settings)).trimmed());
}

/// Not made again while the author's command or the budget is being typed.
QString StartDialog::notesOf(const run::Settings &settings)
{
    run::Settings what = settings;
    what.id.clear();
    what.author.clear();
    what.model.clear();
    what.capDollars = 0;
    const std::string key = run::writeSettings(what);
    if (std::exchange(m_notedFor, key) != key) {
        QStringList sentences;
        for (const std::string &note : run::startNotes(m_workspace, settings))
            sentences << QString::fromStdString(note);
        if (settings.kind == run::Kind::Lift && settings.subject.empty())
            sentences.prepend(tr("No lineage is checked: all of them are lifted from."));
        m_notes = sentences.join(QLatin1Char(' '));
    }
    return m_notes;
}

} // namespace klineage::ui
