// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/begin/newlineagedialog.h"

#include "core/base/identifier.h"
#include "core/kernel/candidatetext.h"
#include "core/kernel/outline/hostcode.h"
#include "core/kernel/outline/siblings.h"
#include "core/workspace/starter.h"
#include "ui/begin/launchform.h"
#include "ui/editor/verdictstrip.h"
#include "ui/highlight/highlightededit.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/verdicttext.h"
#include "ui/style/choosefile.h"
#include "ui/style/keyedcommand.h"
#include "ui/style/theme.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QTabWidget>
#include <QTimer>
#include <QUrl>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int checkDelayMs = 200;

/// A file's name as the name of a lineage.
QString slugOf(const QString &fileName)
{
    QString slug;
    for (const QChar c : QFileInfo(fileName).completeBaseName().toLower()) {
        const bool isKept = (c >= u'a' && c <= u'z') || (c >= u'0' && c <= u'9') || c == u'_';
        slug += isKept ? c : QChar(u'-');
    }
    while (slug.startsWith(u'-'))
        slug.remove(0, 1);
    return slug.left(40);
}

void setProblem(QLabel *label, const QString &text)
{
    label->setText(text.isEmpty() ? QString() : NewLineageDialog::tr("✕ %1").arg(text));
    label->setVisible(!text.isEmpty());
    QPalette colors = label->palette();
    colors.setColor(QPalette::WindowText, Theme::current().bad);
    label->setPalette(colors);
}

} // namespace

NewLineageDialog::NewLineageDialog(WorkspaceModel *workspace, GateController *gate, Devices devices,
                                   QWidget *parent)
    : QDialog(parent)
    , m_workspace(workspace)
    , m_gate(gate)
    , m_devices(std::move(devices))
    , m_gateAction(addKeyedCommand(this, QStringLiteral("newLineage.gate"),
                                   tr("Gate the new lineage's kernel"),
                                   QKeySequence(Qt::CTRL | Qt::Key_Return)))
    , m_askAction(addKeyedCommand(this, QStringLiteral("newLineage.askPlan"),
                                  tr("Ask the author for the new lineage's plan…"),
                                  QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_A)))
    , m_checkTimer(new QTimer(this))
{
    setWindowTitle(tr("New lineage from my kernel"));
    setAcceptDrops(true);
    connect(m_gateAction, &QAction::triggered, this, &NewLineageDialog::gate);
    connect(m_askAction, &QAction::triggered, this, &NewLineageDialog::askForPlan);
    m_checkTimer->setSingleShot(true);
    m_checkTimer->setInterval(checkDelayMs);
    connect(m_checkTimer, &QTimer::timeout, this, &NewLineageDialog::check);
}

NewLineageDialog::~NewLineageDialog()
{
    if (isVisible())
        keep();
}

void NewLineageDialog::listen()
{
    connect(m_open, &QPushButton::clicked, this, &NewLineageDialog::chooseFile);
    connect(m_surface, &QComboBox::activated, this, [this] {
        readSource();
        propose();
    });
    connect(m_source, &QPlainTextEdit::textChanged, this, [this] {
        const QString text = m_source->toPlainText();
        if (std::exchange(m_seenSource, text) == text || m_quiet)
            return; // only its looks changed
        const bool hadKernel = !m_launch->kernelName().empty();
        readSource();
        if (!hadKernel && !m_launch->kernelName().empty())
            propose(); // what was pasted
        onEdited();
    });
    connect(m_preview, &QPlainTextEdit::textChanged, this, [this] {
        const QString text = m_preview->toPlainText();
        if (std::exchange(m_seenPreview, text) != text && !m_quiet && m_written == Written::ByHand)
            onEdited();
    });
    connect(m_workload, &QComboBox::activated, this, [this] { propose(); });
    for (QLineEdit *line : {m_name, m_platform, m_title, m_origin})
        connect(line, &QLineEdit::textChanged, this, &NewLineageDialog::onEdited);
    connect(m_launch, &LaunchForm::edited, this, &NewLineageDialog::onEdited);
    connect(m_launch, &LaunchForm::kernelChosen, this, &NewLineageDialog::propose);
    connect(m_byHand, &QCheckBox::toggled, this, &NewLineageDialog::setByHand);
    connect(m_run, &QPushButton::clicked, this, &NewLineageDialog::gate);
    connect(m_stop, &QPushButton::clicked, this, [this] {
        m_asker.stop();
        m_gate->stop();
    });
    connect(m_ask, &QPushButton::clicked, this, &NewLineageDialog::askForPlan);
    connect(&m_asker, &PlanAsker::progressed, this,
            [this](const QString &text) { m_verdict->setRunning(tr("asking"), tr("Plan: %1…").arg(text)); });
    connect(&m_asker, &PlanAsker::answered, this, &NewLineageDialog::onPlanAnswered);
    connect(&m_asker, &PlanAsker::failed, this, &NewLineageDialog::onPlanFailed);
    connect(m_save, &QPushButton::clicked, this, &NewLineageDialog::saveUngated);
    connect(m_close, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_gate, &GateController::progressed, this,
            [this](quint64 id, const gate::GateProgress &progress) {
                if (m_job == id)
                    m_verdict->setRunning(progressWord(progress), QString::fromStdString(progress.text));
            });
    connect(m_gate, &GateController::finished, this,
            [this](quint64 id, const gate::Trial &trial) { onFinished(id, trial); });
    connect(m_gate, &GateController::failed, this, &NewLineageDialog::onEnded);
    connect(m_gate, &GateController::stopped, this,
            [this](quint64 id) { onEnded(id, tr("The trial was stopped.")); });
}

void NewLineageDialog::begin(const QString &file)
{
    if (!m_source) {
        layOut();
        listen();
    }
    if (m_job && isVisible()) {
        raise();
        return;
    }
    m_root = QString::fromStdString(m_workspace->workspace().root.string());
    fillWorkloads();
    showDevice();
    if (const std::optional<KeptForm> kept = loadForm(keptFormFile(m_root)); kept && file.isEmpty())
        setForm(*kept);
    else if (file.isEmpty())
        setForm({});
    open();
    if (!file.isEmpty())
        openFile(file);
    (m_source->toPlainText().isEmpty() ? static_cast<QWidget *>(m_open) : m_workload)->setFocus();
    updateButtons();
}

void NewLineageDialog::chooseFile()
{
    const QString file =
        chooseFileToOpen(this, tr("Open a kernel"), {}, tr("Kernels (*.cl *.cu);;All files (*)"));
    if (!file.isEmpty())
        openFile(file);
}

bool NewLineageDialog::isKernelFile(const QString &path)
{
    return kernel::surfaceOfFile(path.toStdString()).has_value();
}

bool NewLineageDialog::openFile(const QString &path)
{
    const Result<std::string> bytes = kernel::readCandidateText(path.toStdString());
    if (!bytes) {
        m_verdict->setFailure(QString::fromStdString(bytes.error().message));
        return false;
    }
    const auto named = kernel::surfaceOfFile(path.toStdString());
    const Result<kernel::WithSiblings> whole = kernel::withSiblings(*bytes, path.toStdString());
    if (!whole) {
        m_verdict->setFailure(QString::fromStdString(whole.error().message));
        return false;
    }
    const std::string &text = whole->text;
    const bool hasPlan = kernel::planCommentOf(text).has_value();
    if (!named && !hasPlan) {
        m_verdict->setFailure(
            tr("%1 is no kernel: its name ends neither in .cu nor in .cl.").arg(QFileInfo(path).fileName()));
        return false;
    }
    m_verdict->clear();
    m_fileName = QFileInfo(path).fileName();
    const auto candidate = hasPlan ? kernel::parseCandidate(text, m_fileName.toStdString())
                                   : Result<kernel::Candidate>(tl::unexpected(Error{}));
    const auto plan = candidate ? workload::draftOf(*candidate) : std::nullopt;
    setSurface(candidate ? candidate->surface : named.value_or(kernel::Surface()));
    kernel::DeviceSource device = hasPlan ? kernel::DeviceSource{plan ? plan->code : text, {}, {}}
                                          : kernel::deviceSourceOf(text, surface());
    const std::string code = std::move(device.code);
    m_launches = std::move(device.launches);
    QStringList changes;
    for (const auto &notices : {whole->notices, device.notices}) {
        for (const std::string &notice : notices)
            changes.append(QString::fromStdString(notice));
    }
    m_file->setText(changes.isEmpty() ? m_fileName : tr("%1: %2").arg(m_fileName, changes.join(u' ')));
    m_file->setToolTip(changes.isEmpty() ? path : path + u'\n' + changes.join(u'\n'));
    m_quiet = true;
    m_source->setPlainText(QString::fromStdString(code));
    m_name->setText(slugOf(m_fileName));
    m_quiet = false;
    readSource();
    const kernel::SourceOutline outline = kernel::outlineSource(code, surface());
    if (const workload::Workload *likely = workload::likelyWorkload(outline, m_workloads))
        m_workload->setCurrentIndex(static_cast<int>(likely - m_workloads.data()));
    m_byHand->setChecked(false);
    propose();
    if (hasPlan)
        takePlan(text, code);
    check();
    return true;
}

void NewLineageDialog::fillWorkloads()
{
    const QString chosen = m_workload->currentData().toString();
    m_workloads = m_workspace->workspace().workloads;
    m_existing = m_workloads.size();
    for (const workload::Workload &one : templateWorkloads()) {
        if (!m_workspace->workspace().findWorkload(one.name))
            m_workloads.push_back(one);
    }
    m_workload->clear();
    for (std::size_t i = 0; i < m_workloads.size(); ++i) {
        const QString name = QString::fromStdString(m_workloads[i].name);
        m_workload->addItem(i < m_existing ? name : tr("%1, new from the template").arg(name), name);
    }
    m_workload->setCurrentIndex(std::max(0, m_workload->findData(chosen)));
}

const workload::Workload *NewLineageDialog::chosenWorkload() const
{
    const int index = m_workload->currentIndex();
    return index < 0 || index >= static_cast<int>(m_workloads.size())
               ? nullptr
               : &m_workloads[static_cast<std::size_t>(index)];
}

bool NewLineageDialog::isTemplate() const
{
    return m_workload->currentIndex() >= static_cast<int>(m_existing);
}

kernel::Surface NewLineageDialog::surface() const
{
    return kernel::surfaceFromString(m_surface->currentData().toString().toStdString())
        .value_or(kernel::Surface());
}

void NewLineageDialog::setSurface(kernel::Surface surface)
{
    m_surface->setCurrentIndex(
        std::max(0, m_surface->findData(QString::fromUtf8(kernel::toString(surface)))));
}

/// What the source has goes into the form; fields keep what they say.
void NewLineageDialog::readSource()
{
    const Language language =
        languageOfFile(QStringLiteral("K00%1").arg(QLatin1String(surface().language().extension)));
    m_source->setLanguage(language);
    m_preview->setLanguage(language);
    m_launch->setOutline(kernel::outlineSource(m_source->toPlainText().toStdString(), surface()), surface());
    showDevice();
}

/// Fills the launch anew for the kernel and workload that are chosen.
void NewLineageDialog::propose()
{
    const workload::Workload *workload = chosenWorkload();
    m_launch->setWorkload(workload);
    const std::string code = m_source->toPlainText().toStdString();
    const kernel::SourceOutline outline = kernel::outlineSource(code, surface());
    for (const kernel::KernelFunction &kernel : outline.kernels) {
        if (!workload || kernel.name != m_launch->kernelName())
            continue;
        const workload::PlanGuess guess = workload::guessPlan(code, surface(), kernel, *workload, m_launches);
        m_launch->setDraft(guess.draft, guess.why);
    }
    onEdited();
}

void NewLineageDialog::setByHand(bool byHand)
{
    m_written = byHand ? Written::ByHand : Written::ByForm;
    m_preview->setReadOnly(!byHand);
    m_source->setReadOnly(byHand);
    m_launch->setEnabled(!byHand);
    m_pages->setCurrentWidget(byHand ? m_preview : m_source);
    onEdited();
}

workload::PlanDraft NewLineageDialog::draft() const
{
    workload::PlanDraft draft = m_launch->draft();
    draft.code = m_source->toPlainText().toStdString();
    return draft;
}

lineage::NewLineage NewLineageDialog::wanted() const
{
    lineage::NewLineage lineage;
    if (const workload::Workload *workload = chosenWorkload())
        lineage.workload = workload->name;
    lineage.platform = m_platform->text().trimmed().toStdString();
    lineage.name = m_name->text().trimmed().toStdString();
    lineage.title = m_title->text().trimmed().toStdString();
    lineage.origin = m_origin->text().trimmed().toStdString();
    return lineage;
}

QString NewLineageDialog::nameProblem() const
{
    lineage::NewLineage lineage = wanted();
    const workload::Workload *workload = chosenWorkload();
    if (!workload)
        return tr("The workspace has no workload, and the program no template.");
    if (lineage.platform.empty())
        lineage.platform = "platform"; // the gate's to say
    const Status free = lineage::checkName(
        isTemplate() ? std::filesystem::path("/nonexistent") : workload->directory, lineage);
    return free ? QString() : QString::fromStdString(free.error().message);
}

void NewLineageDialog::onEdited()
{
    if (m_quiet)
        return;
    m_isSound = false;
    m_isChecking = true;
    m_checkTimer->start();
    updateButtons();
}

void NewLineageDialog::check()
{
    m_checkTimer->stop();
    m_isChecking = true;
    setProblem(m_nameProblem, nameProblem());
    const workload::Workload *workload = chosenWorkload();
    if (!workload) {
        showCheck({{"", "Choose a workload."}}, {});
        return;
    }
    const bool byHand = m_written == Written::ByHand;
    m_checking.start(interactivePool(),
                     [this, byHand, workload = *workload, draft = draft(),
                      text = byHand ? m_preview->toPlainText().toStdString()
                                    : std::string()](const std::stop_token &, const JobSlot::Post &post) {
                         const std::string written = byHand ? text : workload::candidateText(draft);
                         auto problems = byHand ? workload::checkCandidateText(text, "K00", workload)
                                                : workload::checkDraft(draft, workload);
                         post([this, problems = std::move(problems),
                               shown = QString::fromStdString(written)] { showCheck(problems, shown); });
                     });
}

void NewLineageDialog::showCheck(const std::vector<workload::FieldProblem> &problems,
                                 const QString &candidate)
{
    if (m_checkTimer->isActive())
        return; // it was edited since
    m_isChecking = false;
    m_candidate = candidate;
    if (m_written == Written::ByForm && m_preview->toPlainText() != candidate) {
        m_quiet = true;
        m_preview->setPlainText(candidate);
        m_quiet = false;
    }
    const bool isEmpty = m_source->toPlainText().isEmpty() && m_written == Written::ByForm;
    m_launch->showProblems(isEmpty ? std::vector<workload::FieldProblem>() : problems);
    m_isSound = problems.empty() && nameProblem().isEmpty();
    const auto whole = std::find_if(problems.begin(), problems.end(),
                                    [](const auto &problem) { return problem.field.empty(); });
    QPalette colors = palette();
    colors.setColor(QPalette::WindowText, m_isSound || isEmpty ? Theme::current().dim : Theme::current().bad);
    m_check->setPalette(colors);
    if (isEmpty)
        m_check->setText(tr("There is no source yet."));
    else if (m_isSound)
        m_check->setText(
            tr("✓ The plan is valid in every case of %1").arg(m_workload->currentData().toString()));
    else if (whole != problems.end())
        m_check->setText(tr("✕ %1").arg(QString::fromStdString(whole->message)));
    else
        m_check->setText(tr("✕ %n field(s) to mend", nullptr,
                            static_cast<int>(std::max<std::size_t>(problems.size(), 1))));
    updateButtons();
    if (std::exchange(m_gateAsked, false))
        gate();
}

/// Which device the gate would use, when it is known that there is none.
void NewLineageDialog::showDevice()
{
    if (!m_source)
        return;
    const std::vector<gate::DeviceInfo> devices = m_devices();
    const auto found = std::find_if(devices.begin(), devices.end(),
                                    [this](const auto &one) { return one.kind == surface()->device; });
    const bool isMissing = found != devices.end() && !found->available;
    m_device->setVisible(isMissing);
    if (isMissing)
        m_device->setText(tr("△ This machine has no %1 device: %2 %3 It can be saved ungated.")
                              .arg(QLatin1String(surface().device().name),
                                   QString::fromStdString(found->detail),
                                   QLatin1String(surface().device().howToGet)));
    // What somebody typed stays.
    const QString known =
        isMissing || found == devices.end() ? QString() : QString::fromStdString(found->platform);
    if (m_platform->text() == std::exchange(m_knownPlatform, known))
        m_platform->setText(known);
}

void NewLineageDialog::updateButtons()
{
    const bool isBusy = m_job || m_isWriting || m_asker.isAsking();
    m_run->setEnabled(m_isSound && !isBusy);
    m_save->setEnabled(m_isSound && !isBusy && !m_platform->text().trimmed().isEmpty());
    m_stop->setEnabled(m_job || m_asker.isAsking());
    m_ask->setEnabled(!isBusy && !m_launch->kernelName().empty());
}

bool NewLineageDialog::isSettled() const
{
    return !m_isChecking && !m_isWriting && !m_checkTimer->isActive();
}

QString NewLineageDialog::candidate() const
{
    return m_candidate;
}

void NewLineageDialog::hideEvent(QHideEvent *event)
{
    keep();
    QDialog::hideEvent(event);
}

void NewLineageDialog::dragEnterEvent(QDragEnterEvent *event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() == 1 && isKernelFile(urls.front().toLocalFile()))
        event->acceptProposedAction();
}

void NewLineageDialog::dropEvent(QDropEvent *event)
{
    if (openFile(event->mimeData()->urls().value(0).toLocalFile()))
        event->acceptProposedAction();
}

void NewLineageDialog::changeEvent(QEvent *event)
{
    if (event->type() == QEvent::PaletteChange && m_source)
        m_checkTimer->start(); // its colours are of the theme
    QDialog::changeEvent(event);
}

} // namespace klineage::ui
