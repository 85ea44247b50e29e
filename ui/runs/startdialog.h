// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/drive/start.h"
#include "ui/runs/gatedesk.h"

#include <QDialog>

class QCheckBox;
class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace klineage::ui {

class AuthorRows;
class KernelBox;
class KeyRing;
class LineageChecks;
class SegmentedSwitch;

/// Asks for what a run of any kind needs, and says what it will cost before it starts. Only the fields that the kind and its author have
/// are there.
class StartDialog : public QDialog
{
    Q_OBJECT

public:
    /// The workspace outlives the dialog. keys: nullptr: without a keychain.
    StartDialog(const Workspace &workspace, KeyRing *keys, QWidget *parent = nullptr);

    /// After it was accepted.
    [[nodiscard]] const run::Settings &settings() const { return m_settings; }
    [[nodiscard]] run::StartRequest request() const;
    void setRequest(const run::StartRequest &request);
    [[nodiscard]] run::Kind kind() const;
    void setKind(run::Kind kind);
    /// What the kinds begin with until the person says another: the states of a materialization and of a deoptimization, the lineage that
    /// is lifted from, the card that is tried. The target of a card is one that had no part in it.
    struct Suggestion {
        QString root;
        QString strongest;
        QString lineage;
        QString card;
    };
    void suggest(const Suggestion &suggestion);

    /// Asks which gates the run's trials go to. poolFile: empty without a pool.
    void offerGates(const QString &poolFile, const RunPlace &place);
    [[nodiscard]] RunPlace runPlace() const;

    [[nodiscard]] QLabel *estimateLabel() const { return m_estimate; }
    [[nodiscard]] QPushButton *startButton() const { return m_start; }
    [[nodiscard]] QFormLayout *fields() const { return m_form; }

private:
    void fillChoices();
    void layOutFields();
    void layOutFrame();
    void listen();
    void update();
    void showFields(const run::StartRequest &now);
    void describe(const run::StartRequest &now);
    [[nodiscard]] QString notesOf(const run::Settings &settings);
    void kindChanged();
    void cardChanged();
    void label(QWidget *field, const QString &text);
    [[nodiscard]] static QSpinBox *addCount(const run::CountOption &range);

    const Workspace &m_workspace;
    KeyRing *m_keys;
    run::Settings m_settings;
    SegmentedSwitch *m_kind;
    QFormLayout *m_form;
    KernelBox *m_kernel;
    QComboBox *m_card;
    KernelBox *m_target;
    LineageChecks *m_lineages;
    QCheckBox *m_again;
    QComboBox *m_workload;
    QLineEdit *m_platform;
    QLineEdit *m_name;
    QComboBox *m_policy;
    AuthorRows *m_author = nullptr;
    QSpinBox *m_steps;
    QSpinBox *m_rejections;
    QSpinBox *m_repairs;
    QSpinBox *m_within;
    QSpinBox *m_attempts;
    QSpinBox *m_seed;
    QCheckBox *m_hypotheses;
    QCheckBox *m_heldOut;
    QComboBox *m_gates; ///< empty before gates are offered
    QLineEdit *m_launcher;
    QLabel *m_estimate;
    QPushButton *m_start = nullptr;
    Suggestion m_suggestion;
    QString m_suggestedTarget;
    std::string m_notedFor; ///< what the notes were made for: they read files
    QString m_notes;
    bool m_quiet = false; ///< fields are being filled
};

} // namespace klineage::ui
