// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/newlineage.h"
#include "core/trial/request.h"
#include "core/workload/guess/guess.h"
#include "ui/begin/keptform.h"
#include "ui/begin/planasker.h"
#include "ui/highlight/jobslot.h"

#include <QDialog>
#include <QTemporaryDir>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

class QAction;
class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QTabWidget;
class QTimer;

namespace klineage::ui {

class GateController;
class HighlightedEdit;
class KeyRing;
class LaunchForm;
class VerdictStrip;
class WorkspaceModel;

/// Makes a lineage of somebody's kernel: its source, what is not in the source, the candidate file that both make, and the gate. Only a
/// correct verdict writes into the workspace (or "Save ungated", which says so); what was typed is kept until then.
class NewLineageDialog : public QDialog
{
    Q_OBJECT

public:
    /// What the gate's device query said, and why it could not be asked.
    using Devices = std::function<std::vector<gate::DeviceInfo>()>;

    /// workspace and gate are not owned and outlive the dialog. Its fields are made when it is first shown.
    NewLineageDialog(WorkspaceModel *workspace, GateController *gate, Devices devices,
                     QWidget *parent = nullptr);
    ~NewLineageDialog() override;

    /// Shows the dialog for the open workspace, with what was typed last, or with this file.
    void begin(const QString &file = {});
    /// False, with the sentence in the dialog, when the file cannot be read or is none.
    bool openFile(const QString &path);

    void setKeys(KeyRing *keys); ///< of authors; not owned. nullptr: keys come from the environment
    void gate();
    void saveUngated();
    /// Asks which author, and then the author, for the plan.
    void askForPlan();
    [[nodiscard]] bool isAsking() const { return m_asker.isAsking(); }
    /// Asks `devices` again.
    void showDevice();
    /// Fields, source and candidate agree, and nothing is being checked or written.
    [[nodiscard]] bool isSettled() const;
    [[nodiscard]] QString candidate() const;

    /// Files that may be dropped or named: with the extension of a surface.
    [[nodiscard]] static bool isKernelFile(const QString &path);

signals:
    /// The lineage is in the workspace's folder: "softmax/pocl-mine".
    void begun(const QString &key);
    void message(const QString &text);

protected:
    void hideEvent(QHideEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dropEvent(QDropEvent *event) override;
    void changeEvent(QEvent *event) override;

private:
    enum class Written { ByForm, ByHand };

    // newlineagelayout.cpp
    void layOut();
    QWidget *makeSource();
    QWidget *makeForm();
    void fitScreen();

    // newlineageask.cpp
    [[nodiscard]] Result<llm::Request> planRequest() const;
    void onPlanAnswered(const QString &reply, double dollars);
    void onPlanFailed(const QString &problem, double dollars);
    bool takePlan(const std::string &candidateText, const std::string &code);

    void listen();
    void chooseFile();
    void fillWorkloads();
    [[nodiscard]] const workload::Workload *chosenWorkload() const;
    [[nodiscard]] bool isTemplate() const;
    [[nodiscard]] kernel::Surface surface() const;
    void setSurface(kernel::Surface surface);
    void readSource();
    void propose();
    void setByHand(bool byHand);
    [[nodiscard]] workload::PlanDraft draft() const;
    [[nodiscard]] lineage::NewLineage wanted() const;
    [[nodiscard]] QString nameProblem() const;
    void onEdited();
    void check();
    void showCheck(const std::vector<workload::FieldProblem> &problems, const QString &candidate);
    void updateButtons();
    [[nodiscard]] std::filesystem::path workloadDirectory(QString *problem);
    void onFinished(quint64 id, const gate::Trial &trial);
    void onEnded(quint64 id, const QString &text);
    void write(const lineage::NewLineage &lineage, const std::string &text,
               const std::optional<gate::Trial> &trial);
    [[nodiscard]] KeptForm form() const;
    void setForm(const KeptForm &form);
    void keep();

    WorkspaceModel *m_workspace;
    GateController *m_gate;
    Devices m_devices;
    QAction *m_gateAction;
    QAction *m_askAction;
    KeyRing *m_keys = nullptr;
    PlanAsker m_asker;
    JobSlot m_checking;
    JobSlot m_writing;
    QTimer *m_checkTimer;
    std::unique_ptr<QTemporaryDir> m_templates;  ///< a template's workload while its kernel is gated
    std::vector<workload::Workload> m_workloads; ///< existing ones, then templates
    std::vector<kernel::HostLaunch> m_launches;  ///< of host code that the file had
    std::size_t m_existing = 0;
    Written m_written = Written::ByForm;
    QString m_fileName;
    QString m_seenSource;
    QString m_seenPreview;
    QString m_root;
    QString m_knownPlatform;      ///< of the device, as it was filled in last
    QString m_candidate;          ///< of the last check
    std::optional<quint64> m_job; ///< of the gate
    std::string m_gatedText;
    lineage::NewLineage m_gatedAs;
    bool m_isChecking = false;
    bool m_isWriting = false;
    bool m_isSound = false;   ///< the last check found nothing
    bool m_gateAsked = false; ///< once the check is done
    bool m_quiet = false;

    // Made by layOut().
    QTabWidget *m_pages = nullptr;
    HighlightedEdit *m_source = nullptr;
    HighlightedEdit *m_preview = nullptr;
    QLabel *m_file = nullptr;
    QPushButton *m_open = nullptr;
    QComboBox *m_surface = nullptr;
    QComboBox *m_workload = nullptr;
    QLineEdit *m_name = nullptr;
    QLabel *m_nameProblem = nullptr;
    QLineEdit *m_platform = nullptr;
    QLineEdit *m_title = nullptr;
    QLineEdit *m_origin = nullptr;
    QCheckBox *m_byHand = nullptr;
    LaunchForm *m_launch = nullptr;
    VerdictStrip *m_verdict = nullptr;
    QLabel *m_device = nullptr;
    QLabel *m_check = nullptr;
    QPushButton *m_ask = nullptr;
    QPushButton *m_save = nullptr;
    QPushButton *m_stop = nullptr;
    QPushButton *m_run = nullptr;
    QPushButton *m_close = nullptr;
};

} // namespace klineage::ui
